export { streamedBlocks } from './blocks';
export type { Clip, ClipOptions, TextContext, TimeEmbedding, Times, TokenRows } from './clip';
export { stepKernels } from './kernel-steps';
export { Transformer } from './transformer';
export type { TransformerWeights } from './weights';
