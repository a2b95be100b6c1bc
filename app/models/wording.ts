import {
  type ComponentId,
  formatBytes,
  formatMemory,
  formatPercent,
  isUsualComponent,
  type LibraryEntry,
  type MemoryNeed,
  type ModelComponent,
  type ModelManifest,
  type PauseReason,
  type Precision,
  type PrecisionChoice,
  profileNames,
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

/** `About 13.5 GB in 8-bit, 9.7 GB in 4-bit`; null where the manifest does not say. */
export function downloadSizes(choices: readonly PrecisionChoice[]): string | null {
  const sizes = choices.flatMap(({ name, download }) =>
    download === undefined
      ? []
      : [t('models.sizeIn', { bytes: formatBytes(download), precision: name })],
  );
  return sizes.length === 0
    ? null
    : t('models.aboutSizes', { sizes: sizes.join(t('models.comma')) });
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
 * Whether a model of this precision fits the memory of a GPU, as a sentence.
 *
 * @param available device bytes that the GPU was found to give; null where it was not measured
 */
export function fitSentence(choice: PrecisionChoice, available: number | null): string {
  const { full, least } = memoryRange(choice);
  const needs = profileNames
    .map((name) => {
      const need = choice.memory[name];
      const values = { full: formatMemory(need.full), least: formatMemory(need.least) };
      return t('models.needs', { profile: t(`names.profile.${name}`), ...values });
    })
    .join(' ');
  if (available === null) return needs;
  if (available >= full) return t('models.fits', { full: formatMemory(full) });
  const sentence = available >= least ? 'models.fitsSlower' : 'models.tooLarge';
  return `${t(sentence, { given: formatMemory(available) })} ${needs}`;
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
