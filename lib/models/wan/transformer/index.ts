export type { Clip, TextContext, TimeEmbedding, Times } from './clip';
export { type DenoisePlanOptions, planDenoising } from './denoising-memory';
export { tokenWidth } from './sizes';
export { Transformer } from './transformer';
