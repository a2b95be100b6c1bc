import { modelFamilies } from '../lib/models';
import { startEngine } from './engine/engine';

startEngine({ families: modelFamilies });
