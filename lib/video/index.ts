export * from './cover-crop';
export { createVideoWriter, type VideoWriter } from './encoder';
export * from './frame-image';
export * from './frame-scaler';
export { readFrames } from './frames';
export * from './image';
export * from './inspect';
export * from './metadata';
export { type ImageHeader, sniffImage } from './sniff';
