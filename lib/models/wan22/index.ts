export { RunControl } from '../../pipeline/control';
export { type Frame, type ImageToVideoRequest, imageToVideo } from '../../pipeline/run';
export { readModelConfig } from './config';
export { combineLoras, type LoraBranches, parseLora } from './lora';
export { type Model, openBundledModel, openModel } from './model';
