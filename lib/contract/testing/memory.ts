import type { MemoryReport } from '../progress';

/** A run that fitted as a whole, for tests that only need one. */
export const fullMemory: MemoryReport = {
  budget: 2 ** 30,
  peak: 2 ** 29,
  blocks: 2,
  residentBlocks: 2,
  chunkTokens: 4096,
  decodeTiles: 1,
  replans: 0,
};
