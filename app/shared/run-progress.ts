import {
  formatBytes,
  formatMemory,
  type MemoryReport,
  type Phase,
  phases,
} from '../../lib/contract';
import type { RunProgress } from '../../lib/predictions/run-state';
import { t } from '../texts';

/** The phases of this run in order: `optimise` and `check` only where they are part of it. */
export function runPhases({ optimises, checks }: RunProgress): readonly Phase[] {
  const absent: readonly Phase[] = [
    ...(optimises ? [] : (['optimise'] as const)),
    ...(checks ? [] : (['check'] as const)),
  ];
  return phases.filter((name) => !absent.includes(name));
}

/** Percent of the whole run as an integer, up to 99; null before it has begun. */
export function percentDone({ phase, share }: Pick<RunProgress, 'phase' | 'share'>): number | null {
  return phase === null ? null : Math.min(99, Math.floor(100 * share));
}

/** One line about the present phase, with its numbers. */
export function progressText(progress: RunProgress): string {
  const { phase, bytes, tuning, step, steps, frame, frames, tile } = progress;
  if (phase === null) return t('shared.startingEngine');
  if (phase === 'denoise') return t('shared.step', { step, steps });
  if (phase === 'decode' && tile) {
    return t('shared.tile', { ...tile });
  }
  if (phase === 'decode' && frames > 0) return t('shared.frame', { frame, frames });
  if (phase !== 'load') return t(`names.phase.${phase}`);
  if (tuning) return t('shared.measuringGpu', { ...tuning });
  if (!bytes) return t('shared.loadingModel');
  return t('shared.loadingModelBytes', {
    done: formatBytes(bytes.done),
    total: formatBytes(bytes.total),
  });
}

/** The memory plan of a running generation, in one to three sentences. */
export function memoryPlanText(memory: MemoryReport): string {
  const { blocks, residentBlocks, decodeTiles, replans, peak, budget, budgetSet } = memory;
  // A measured budget equals what the run wants, so only a budget of the user is worth showing.
  const amount = budgetSet
    ? t('shared.amountOf', { amount: formatMemory(peak), total: formatMemory(budget) })
    : formatMemory(peak);
  const sentences = [
    residentBlocks >= blocks
      ? t('shared.planAll', { blocks, amount })
      : t('shared.planSome', { blocks, resident: residentBlocks }),
  ];
  if (decodeTiles > 1) sentences.push(t('shared.planTiles', { tiles: decodeTiles }));
  if (replans > 0) sentences.push(t('shared.planReplans', { times: replans }));
  return sentences.join(' ');
}

/** The memory of a finished generation: the amount, and how it was reduced. */
export function memoryUseText({ peak, decodeTiles, blocks, residentBlocks }: MemoryReport): string {
  const facts = [
    formatMemory(peak),
    ...(residentBlocks < blocks
      ? [t('shared.memoryStreamed', { streamed: blocks - residentBlocks, blocks })]
      : []),
    ...(decodeTiles > 1 ? [t('shared.memoryTiled', { tiles: decodeTiles })] : []),
  ];
  return facts.reduce((first, second) => t('shared.listOf', { first, second }));
}
