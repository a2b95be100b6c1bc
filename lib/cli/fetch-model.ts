import {
  type AdapterChoices,
  adapterOffers,
  type ComponentId,
  decoderOffers,
  entriesOf,
  formatBytes,
  guidanceOffers,
  type HeadlessEvent,
  KinoraError,
  type LibraryEntry,
  type ModelEntry,
  type PartState,
  type Precision,
  toKinoraError,
} from '../contract';
import { requireRoom } from '../library/download-plan';
import type { Command } from './command';
import { askToDownload, ensureTerms, freeBytes, offerText, withDiskSpace } from './consent';
import { DownloadReport } from './download-report';
import { type LibrarySession, openLibrarySession } from './session';

/** How long a paused download may take to save its progress. */
const pauseLimitMs = 15_000;

/** How a model is to be fetched. */
export interface FetchOptions {
  /** Undefined: that of the stored parts, or the model's default. */
  readonly precision: Precision | undefined;
  /** Names of adapters, or `none`; when absent, those chosen before or the first. */
  readonly adapters?: readonly string[] | undefined;
  /** Agreed to beforehand. */
  readonly yes: boolean;
  /** The terms of use are accepted by the command line. */
  readonly acceptTerms: boolean;
  /**
   * Whether a missing safety checker is fetched for a model that is ready without it; false: it is not fetched
   * at all. When absent, it is fetched with the others.
   */
  readonly safetyChecker?: boolean;
}

/**
 * Makes a model ready to run: shows what has to be fetched, asks, and fetches it. What was fetched
 * before is kept. A complete model needs no request.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED` without consent, `STORAGE_FULL`, what the hub answers,
 *   `CANCELLED` when Ctrl-C has paused the download
 */
export async function fetchModel(
  command: Command,
  session: LibrarySession,
  id: string,
  options: FetchOptions,
): Promise<ModelEntry> {
  const before = await session.model(id);
  const failure = await fetchEntry(command, session, before, options).catch(toKinoraError);
  const now = await session.model(id);
  // A part that a run does not need was named where it failed.
  if (failure && (before.ready || !now.ready || command.signal.aborted)) throw failure;
  return now;
}

/** Opens the browser that stores a model, and downloads the model where it is missing. */
export async function openWithModel(
  command: Command,
  home: string,
  options: FetchOptions & { readonly model: string; readonly hub: string | undefined },
  onProgress: (event: HeadlessEvent) => void,
): Promise<LibrarySession & Pick<ModelEntry, 'manifest'>> {
  const session = await openLibrarySession(command, home, options.hub, onProgress);
  const { manifest } = await fetchModel(command, session, options.model, options);
  return { ...session, manifest };
}

/** As {@link fetchModel}, for a video model or a language model. */
export async function fetchEntry(
  command: Command,
  session: LibrarySession,
  entry: LibraryEntry,
  { precision: requested, adapters: named, yes, acceptTerms, safetyChecker }: FetchOptions,
): Promise<void> {
  const { manifest } = entry;
  const { id } = manifest;
  const precision = requested ?? entry.precision ?? manifest.precision;
  const isOther = entry.origin !== 'bundled' && precision !== entry.precision;
  const lacksChecker = entry.parts.some(isMissingChecker);
  const adapters = named ? adaptersNamed(manifest, named) : entry.adapters;
  const without: ComponentId[] = safetyChecker === false ? ['safety_checker'] : [];
  const isRequested = isOther || (safetyChecker === true && lacksChecker) || named !== undefined;
  if (entry.ready && !isRequested) return;
  checkPrecision(entry, precision);
  const { page, home } = session;
  await ensureTerms(command, session, acceptTerms);

  const { hub } = await session.snapshot();
  command.say(`Asking ${hub} for the sizes …`);
  const plan = await command.interruptible(() =>
    page.call('planDownload', id, precision, adapters, without),
  );
  const known = withDiskSpace(plan, await freeBytes(home));
  command.say(offerText({ manifest, precision, adapters, plan: known, hub, home }));
  requireRoom(known);
  if (!yes) {
    const what = `${manifest.name} (${formatBytes(plan.download)})`;
    const terminal = { input: process.stdin, output: process.stdout };
    await askToDownload(what, terminal, command.signal);
  }
  await download(command, session, entry, [precision, adapters, without]);
}

/** @throws KinoraError `PARAMETER_INVALID` naming the adapters that there are, and for two of a kind */
function adaptersNamed(
  manifest: LibraryEntry['manifest'],
  named: readonly string[],
): AdapterChoices {
  const fewStep = adapterOffers(manifest);
  const offers = [...fewStep, ...guidanceOffers(manifest), ...decoderOffers(manifest)];
  const refused = (sentence: string) => new KinoraError('PARAMETER_INVALID', sentence);
  if (offers.length === 0) throw refused(`${manifest.name} has no adapters.`);
  const isNone = ([first, ...more]: readonly string[]) =>
    first?.toLowerCase() === 'none' && more.length === 0;
  if (isNone(named)) return [];
  const names = offers.map(({ adapter }) => adapter.name);
  const chosen = named.map((each) => {
    const offer = offers.find(({ adapter }) => adapter.name.toLowerCase() === each.toLowerCase());
    if (offer) return offer.choice;
    throw refused(
      `${manifest.name} has no adapter "${each}"; it has ${names.join(', ')} and none.`,
    );
  });
  if (fewStep.filter(({ choice }) => chosen.includes(choice)).length > 1) {
    throw refused('Ultra-fast videos are made with one adapter: name one of them.');
  }
  return chosen;
}

/** Whether a part is a safety checker that is not here. */
export function isMissingChecker({ component, status }: PartState): boolean {
  return component === 'safety_checker' && status !== 'complete';
}

function checkPrecision({ manifest }: LibraryEntry, precision: Precision): void {
  const known = manifest.choices.map((choice) => choice.precision);
  if (known.length === 0 || known.includes(precision)) return;
  throw new KinoraError(
    'PARAMETER_INVALID',
    `${manifest.name} does not come as ${precision}; it comes as ${known.join(' or ')}.`,
  );
}

async function download(
  command: Command,
  session: LibrarySession,
  entry: LibraryEntry,
  scope: readonly [Precision, AdapterChoices | undefined, readonly ComponentId[]],
): Promise<void> {
  const { page } = session;
  const { id, name } = entry.manifest;
  const fetching = page.call('downloadModel', id, ...scope);
  const pause = async () => {
    await page.call('pause', id);
    await fetching;
  };
  const stopped = () =>
    new KinoraError('CANCELLED', `The download of ${name} is paused.`, {
      remedy: 'Run the same command again: it goes on where it stopped.',
    });
  const now = await watched(command, session, entry, () =>
    command.interruptible(() => fetching, pause, { timeoutMs: pauseLimitMs, stopped }),
  );
  if (now.ready) return;
  requireNoFailure(now);
  throw new KinoraError('MODEL_NOT_INSTALLED', `${name} is not here completely.`, {
    remedy: 'Run the same command again: it goes on where it stopped.',
  });
}

/** Shows the progress of a model while work changes its parts. @returns the model after it */
export async function watched(
  command: Command,
  session: LibrarySession,
  before: LibraryEntry,
  work: () => Promise<unknown>,
): Promise<LibraryEntry> {
  const { id } = before.manifest;
  const report = new DownloadReport(command.screen);
  report.take(before);
  session.watch((snapshot) => {
    const entry = entriesOf(snapshot).find(({ manifest }) => manifest.id === id);
    if (entry) report.take(entry);
  });
  try {
    await work();
  } finally {
    session.watch(null);
    command.screen.end();
  }
  // The final state may not have been reported.
  const after = await session.entry(id);
  report.take(after);
  return after;
}

/** @throws KinoraError the failure of a part */
export function requireNoFailure({ parts }: LibraryEntry): void {
  const failed = parts.find(({ error }) => error);
  if (failed?.error) throw KinoraError.fromRecord(failed.error);
}
