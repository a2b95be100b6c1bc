export { createVideoWriter, type VideoWriter } from './encoder';
export * from './frame-image';
export * from './frame-scaler';
export { readFrames } from './frames';
export { I420Scaler } from './i420-scaler';
export * from './image';
export * from './inspect';
export * from './metadata';
export { type ImageHeader, sniffImage } from './sniff';
