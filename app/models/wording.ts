import { formatBytes, formatMemory } from '../../lib/contract/format';
import type { PauseReason } from '../../lib/contract/library';
import type { Precision, PrecisionChoice } from '../../lib/contract/manifest';

/** Names of the precisions where a manifest gives none. */
export const precisionNames: Readonly<Record<Precision, string>> = {
  f32: '32-bit',
  int8: '8-bit',
  int4: '4-bit',
};

/** Why nothing moves, and what to do. */
export const pauseSentences: Readonly<Record<PauseReason, string>> = {
  user: 'Paused. What is there is kept.',
  network:
    'Paused: the hub cannot be reached. It goes on by itself, where it stopped, when the connection is back.',
  storage:
    "Paused: the browser's storage is full. Delete another model or free disk space, then resume.",
  interrupted:
    'It stopped before it was complete: its page was closed, or another tab paused it. What is there is kept.',
};

/** `0.24 %`; a relative error of 0 has nothing to show. */
export function formatRelativeError(relativeError: number): string {
  const percent = 100 * relativeError;
  return `${percent >= 0.01 ? percent.toFixed(2) : percent.toExponential(1)} %`;
}

/** `about 13.5 GB in 8-bit, 9.7 GB in 4-bit`; null where the manifest does not say. */
export function downloadSizes(choices: readonly PrecisionChoice[]): string | null {
  const sizes = choices.flatMap(({ name, download }) =>
    download === undefined ? [] : [`${formatBytes(download)} in ${name}`],
  );
  return sizes.length === 0 ? null : `about ${sizes.join(', ')}`;
}

/**
 * Whether a model of this precision fits the memory of a GPU, as a sentence.
 *
 * @param given device bytes that the GPU was found to give; null where it was not measured
 */
export function fitSentence(choice: PrecisionChoice, given: number | null): string {
  const { full, least } = choice.memory;
  const needs = `${formatMemory(full)} of GPU memory at full speed, ${formatMemory(least)} at least`;
  if (given === null) return `Needs ${needs}.`;
  if (given >= full) return `Fits your GPU at full speed: needs ${formatMemory(full)}.`;
  if (given >= least) {
    return `Fits your GPU, which gives ${formatMemory(given)}, with parts read from disk in every step: slower. Needs ${needs}.`;
  }
  return `Too large for your GPU, which gives ${formatMemory(given)}. Needs ${needs}.`;
}
