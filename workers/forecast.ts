import { exposeWorker } from '../lib/contract';
import { forecast } from '../lib/engine/estimate';
import { modelFamilies } from '../lib/models';

// Beside the engine, which may be busy.
exposeWorker({ forecast: forecast.bind(null, modelFamilies) });
