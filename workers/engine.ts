import { startEngine } from '../lib/engine/engine';
import { modelFamilies } from '../lib/models';

startEngine({ families: modelFamilies });
