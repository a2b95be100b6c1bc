/** The engine of the app with short videos, for tests that look at whole runs. */
import './short-videos';
import { modelFamilies } from '../../models';
import { startEngine } from '../engine';

startEngine({ families: modelFamilies });
