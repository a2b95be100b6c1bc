import type { MemoryReport } from '../../lib/contract/progress';
import { formatMemory } from './format';

/** How a run fits the memory, in one or two sentences. */
export function planSentence(memory: MemoryReport): string {
  const { blocks, residentBlocks, decodeTiles, replans, peak, budget, budgetSet } = memory;
  // A budget that nobody set is what the run wants itself: it would say the same twice.
  const amount = budgetSet
    ? `${formatMemory(peak)} of ${formatMemory(budget)}`
    : formatMemory(peak);
  const sentences = [
    residentBlocks >= blocks
      ? `All ${blocks} blocks stay in memory (${amount}).`
      : `${residentBlocks === 0 ? 'None' : residentBlocks} of ${blocks} blocks ${residentBlocks === 1 ? 'stays' : 'stay'} in memory; the others are read from disk in every step.`,
  ];
  if (decodeTiles > 1) sentences.push(`The frames will be decoded in ${decodeTiles} tiles.`);
  if (replans > 0) {
    const times = replans === 1 ? 'once' : `${replans} times`;
    sentences.push(`Memory ran out ${times}: it was planned smaller and went on.`);
  }
  return sentences.join(' ');
}

/** What a result says about its memory: the figure, and what may show in the picture. */
export function memoryFact({ peak, decodeTiles, blocks, residentBlocks }: MemoryReport): string {
  const streamed =
    residentBlocks < blocks
      ? `, ${blocks - residentBlocks} of ${blocks} blocks read from disk`
      : '';
  const tiled = decodeTiles > 1 ? `, decoded in ${decodeTiles} tiles` : '';
  return `${formatMemory(peak)}${streamed}${tiled}`;
}
