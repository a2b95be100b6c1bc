export type { Clip, TextContext, TimeEmbedding, Times } from './clip';
export { type DenoisePlanOptions, planDenoising } from './denoising-memory';
export { Transformer } from './transformer';
export { tokenWidth } from './transformer-weights';
