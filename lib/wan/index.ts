export { readModelConfig } from './config';
export { RunControl } from './control';
export { type Frame, type ImageToVideoRequest, imageToVideo } from './image-to-video';
export { combineLoras, type LoraBranches, parseLora } from './lora';
export { type Model, openBundledModel, openModel } from './model';
