export { streamedBlocks } from './blocks';
export { type ClipMemory, type ClipMemoryOptions, createClipMemory } from './clip-memory';
export { type TextContext, type TimeEmbedding, Transformer } from './transformer';
