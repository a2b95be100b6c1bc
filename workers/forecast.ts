import { startForecast } from '../lib/engine/forecast';
import { modelFamilies } from '../lib/models';

startForecast(modelFamilies);
