import { formatBytes, formatMemory, phaseNames } from '../../lib/contract/format';
import { type MemoryReport, type Phase, phases } from '../../lib/contract/progress';
import type { RunProgress } from '../../lib/predictions/run-state';

/** The phases of this run in order: `optimise` and `check` only where they are part of it. */
export function runPhases({ phase, optimises, inputCheck }: RunProgress): readonly Phase[] {
  const absent: readonly Phase[] = [
    ...(optimises ? [] : (['optimise'] as const)),
    // A checker that runs has looked at the start image first.
    ...(inputCheck || phase === 'check' ? [] : (['check'] as const)),
  ];
  return phases.filter((name) => !absent.includes(name));
}

/** Percent of the whole run as an integer, up to 99; null before it has begun. */
export function percentDone({ phase, share }: Pick<RunProgress, 'phase' | 'share'>): number | null {
  return phase === null ? null : Math.min(99, Math.floor(100 * share));
}

/** One line about the present phase, with its numbers. */
export function progressText(progress: RunProgress): string {
  const { phase, bytes, step, steps, frame, frames, tile } = progress;
  if (phase === null) return 'Starting the engine';
  if (phase === 'denoise') return `Step ${step} of ${steps}`;
  if (phase === 'decode' && tile) {
    return `Tile ${tile.tile} of ${tile.tiles}, frame ${tile.frame} of ${tile.frames}`;
  }
  if (phase === 'decode') return frames > 0 ? `Frame ${frame} of ${frames}` : phaseNames[phase];
  if (phase !== 'load') return phaseNames[phase];
  if (!bytes) return 'Loading the model';
  return `Loading the model · ${formatBytes(bytes.done)} of ${formatBytes(bytes.total)}`;
}

/** The memory plan of a running generation, in one to three sentences. */
export function memoryPlanText(memory: MemoryReport): string {
  const { blocks, residentBlocks, decodeTiles, replans, peak, budget, budgetSet } = memory;
  // A measured budget equals what the run wants, so only a budget of the user is worth showing.
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
    sentences.push(`Memory ran out ${times}; the run continued with a smaller plan.`);
  }
  return sentences.join(' ');
}

/** The memory of a finished generation: the amount, and how it was reduced. */
export function memoryUseText({ peak, decodeTiles, blocks, residentBlocks }: MemoryReport): string {
  const streamed =
    residentBlocks < blocks
      ? `, ${blocks - residentBlocks} of ${blocks} blocks read from disk`
      : '';
  const tiled = decodeTiles > 1 ? `, decoded in ${decodeTiles} tiles` : '';
  return `${formatMemory(peak)}${streamed}${tiled}`;
}
