export type { Clip, TextContext, TimeEmbedding, Times } from './clip';
export { type DenoisePlanOptions, planDenoising } from './plan';
export { conditionWidth, tokenWidth } from './sizes';
export { Transformer } from './transformer';
export type { TransformerWeights } from './weights';
