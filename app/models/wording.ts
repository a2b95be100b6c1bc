import {
  type ComponentId,
  formatBytes,
  formatMemory,
  formatPercent,
  isUsualComponent,
  type LibraryEntry,
  type MemoryNeed,
  type ModelComponent,
  type ModelEntry,
  type ModelManifest,
  type PauseReason,
  type Precision,
  type PrecisionChoice,
} from '../../lib/contract';
import { manifestText, type TextKey, t } from '../texts';
import '../texts/en/models';
import { formatTime } from '../texts/format';
import { isActive, type ModelView, viewModel } from './model-view';

/** Names of the precisions where a manifest gives none. */
export const precisionNames: Readonly<Record<Precision, TextKey>> = {
  f32: 'models.bits32',
  int8: 'models.bits8',
  int4: 'models.bits4',
};

/** Name or purpose of a part of a model: the usual one, or what its manifest says. */
export function componentText(
  id: ComponentId,
  what: 'name' | 'purpose',
  components: readonly ModelComponent[],
): string {
  if (isUsualComponent(id)) return t(`names.component.${id}.${what}`);
  return components.find((component) => component.id === id)?.[what] ?? id;
}

/** Why nothing moves, and what to do. */
export const pauseSentences: Readonly<Record<PauseReason, TextKey>> = {
  user: 'models.pausedByUser',
  network: 'models.pausedByNetwork',
  storage: 'models.pausedByStorage',
  interrupted: 'models.pausedByInterruption',
};

/** `0.24 %`; a relative error of 0 has nothing to show. */
export function formatRelativeError(relativeError: number): string {
  const percent = 100 * relativeError;
  return `${percent >= 0.01 ? percent.toFixed(2) : percent.toExponential(1)} %`;
}

/** The least that any of a model's profiles needs, and what all of them run in at full speed. */
export function memoryRange({ memory }: Pick<PrecisionChoice, 'memory'>): MemoryNeed {
  const { standard, 'ultra-fast': draft } = memory;
  return {
    full: Math.max(standard.full, draft.full),
    least: Math.min(standard.least, draft.least),
  };
}

/**
 * Whether a model of this precision fits the memory of a GPU: whole, with parts read from disk in every step, or not.
 *
 * @param available device bytes that the GPU was found to give; null where it was not measured
 */
export function fitOf(
  choice: PrecisionChoice,
  available: number | null,
): 'full' | 'some' | 'none' | 'unknown' {
  const { full, least } = memoryRange(choice);
  if (available === null) return 'unknown';
  return available >= full ? 'full' : available >= least ? 'some' : 'none';
}

/** The form of a model that is here, else the first that fits whole, else the smallest that fits. */
export function bestChoice(
  { manifest: { choices }, ready, precision }: ModelEntry,
  available: number | null,
): PrecisionChoice | undefined {
  const fits = (fit: ReturnType<typeof fitOf>) =>
    choices.filter((one) => fitOf(one, available) === fit);
  const here = choices.find((one) => ready && one.precision === precision);
  return here ?? fits('full')[0] ?? fits('some').at(-1) ?? choices[0];
}

/** `1.6 – 7.2 GiB ✓ fits`: the least that it needs, with how much it runs at full speed, and what that means here. */
export function fitText(choice: PrecisionChoice, available: number | null): string {
  const { least, full } = memoryRange(choice);
  return t('models.memoryOf', {
    fit: fitOf(choice, available),
    // A unit is enough: a phone is narrow.
    least: formatMemory(least).replace(' GiB', ''),
    full: formatMemory(full),
  });
}

/** `1.2 GB of 5.4 GB · 24 MB/s · about 3 min 05 s left`, as much of it as is known. */
export function measureOf(view: ModelView, bytesPerSecond: number): string {
  const { bytesDone, bytesTotal, secondsRemaining, status } = view;
  const amount = amountOf(bytesDone, bytesTotal);
  if (!isActive(status) || bytesPerSecond <= 0) return amount;
  const left =
    secondsRemaining === null ? [] : [t('common.jobLeft', { time: formatTime(secondsRemaining) })];
  return [amount, `${formatBytes(bytesPerSecond)}/s`, ...left].join(' · ');
}

/** `1.2 GB of 5.4 GB`; `1.2 GB so far` where the whole is not known. */
export function amountOf(done: number, total: number | null): string {
  return total === null
    ? t('models.soFar', { bytes: formatBytes(done) })
    : t('shared.amountOf', { amount: formatBytes(done), total: formatBytes(total) });
}

/** The sentence that a screen reader reads out when something changed. */
export function announce(entry: LibraryEntry): { topic: string; text: string } {
  const { name, id } = entry.manifest;
  const { status, fraction } = viewModel(entry);
  const text =
    fraction !== null && (status === 'downloading' || status === 'paused')
      ? t(`models.announcedAt.${status}`, { name, percent: formatPercent(fraction) })
      : t(`models.announced.${status}`, { name });
  return { topic: `${id} ${status}`, text };
}

/** `8-bit`, as the manifest names it. */
export function precisionName(manifest: ModelManifest, precision: Precision): string {
  const choice = manifest.choices.find((one) => one.precision === precision);
  return choice ? manifestText(choice.name) : t(precisionNames[precision]);
}
