/** The engine with one frame per second, and tiny networks that finish videos. */
import './short-videos';
import { appUrl, type FinisherPart } from '../../contract';
import { modelFamilies } from '../../models';
import { httpFolder } from '../../weights';
import { startEngine } from '../engine';
import { installedTools } from '../tools';

const folder = httpFolder(appUrl('/lib/finishing/goldens/'));
const files = { interpolator: 'tiny-rife/model.safetensors', upscaler: 'compact.pth' };
const finisher = (part: FinisherPart) => folder.open(files[part]);
startEngine({ families: modelFamilies, tools: { ...installedTools, finisher } });
