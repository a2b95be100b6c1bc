export { streamedBlocks } from './blocks';
export type { Clip, ClipOptions, TextContext, TimeEmbedding, Times } from './clip';
export { Transformer } from './transformer';
