export { streamedBlocks } from './blocks';
export type { Clip, ClipOptions, TextContext, TimeEmbedding, Times, TokenRows } from './clip';
export { type DenoisePlanOptions, planDenoising } from './plan';
export { conditionWidth, tokenWidth } from './sizes';
export { Transformer } from './transformer';
export type { TransformerWeights } from './weights';
