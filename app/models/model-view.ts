import {
  type AdapterChoices,
  type AdapterPart,
  adapterOffers,
  adapterParts,
  guidanceOffers,
  isAdapterFile,
  type LibraryEntry,
  type ModelEntry,
  type PartState,
  type PauseReason,
  type ProfileAdapter,
  progressOf,
  type StoredComponent,
} from '../../lib/contract';

/** Where a model stands as a whole. */
export type ModelStatus =
  | 'ready'
  | 'absent'
  | 'partial'
  | 'downloading'
  | 'verifying'
  | 'paused'
  | 'failed'
  /** Another tab works on it. */
  | 'elsewhere';

/** A model as the page shows it, derived from its entry and nothing else. */
export interface ModelView {
  readonly status: ModelStatus;
  /** Why it is paused; null otherwise. */
  readonly pausedBy: PauseReason | null;
  readonly bytesDone: number;
  /** Null until the size of every part is known. */
  readonly bytesTotal: number | null;
  /** From 0 to 1; null where a size is unknown. */
  readonly fraction: number | null;
  /** Null while nothing runs or its speed is not known. */
  readonly secondsRemaining: number | null;
  /** Without what other models share: what its deletion frees. */
  readonly bytesStored: number;
  /** When the part that was checked longest ago was checked; null where nothing is stored. */
  readonly verifiedAt: string | null;
  /** The largest error of any stored tensor; null where everything is exact or nothing is there. */
  readonly worst: StoredComponent['worst'];
}

/** The reason that asks most of the person comes first. */
const reasons: readonly PauseReason[] = ['storage', 'network', 'interrupted', 'user'];

/** Sums up the parts of a model. */
export function viewModel(entry: LibraryEntry): ModelView {
  const { parts, stored, bytesPerSecond } = entry;
  const status = statusOf(entry);
  const { bytesDone, bytesTotal } = entry.elsewhere ?? progressOf(parts);
  const left = bytesTotal === null ? null : Math.max(0, bytesTotal - bytesDone);
  const moving = isActive(status) && bytesPerSecond > 0;
  const ownBytes = (all: readonly Pick<PartState, 'component' | 'bytesStored'>[]) =>
    all.filter(isOwn(entry)).reduce((sum, { bytesStored }) => sum + bytesStored, 0);
  return {
    status,
    pausedBy: status === 'paused' ? pauseReason(parts) : null,
    bytesDone,
    bytesTotal,
    fraction: fractionOf(bytesDone, bytesTotal),
    secondsRemaining: moving && left !== null ? left / bytesPerSecond : null,
    bytesStored: Math.max(ownBytes(parts), ownBytes(stored)),
    verifiedAt: stored.map((part) => part.verifiedAt).sort()[0] ?? null,
    worst: stored
      .map((part) => part.worst)
      .reduce((a, b) => ((b?.relativeError ?? 0) > (a?.relativeError ?? 0) ? b : a), null),
  };
}

/** Whether this tab fetches or checks a model now. */
export function isActive(status: ModelStatus): boolean {
  return status === 'downloading' || status === 'verifying';
}

function isOwn({ shared = [] }: LibraryEntry) {
  return ({ component }: Pick<PartState, 'component'>) => !shared.includes(component);
}

function statusOf(entry: LibraryEntry): ModelStatus {
  const { parts, ready, elsewhere } = entry;
  if (elsewhere) return 'elsewhere';
  const has = (status: PartState['status']) => parts.some((part) => part.status === status);
  if (has('downloading')) return 'downloading';
  if (has('verifying')) return 'verifying';
  // Parts wait for one that waits for the network: as a whole it stands still.
  if (parts.some((part) => part.pausedBy === 'network')) return 'paused';
  if (has('waiting')) return 'downloading';
  if (has('failed')) return 'failed';
  if (has('paused')) return 'paused';
  if (ready) return 'ready';
  return parts.filter(isOwn(entry)).some(({ status }) => status === 'complete')
    ? 'partial'
    : 'absent';
}

function pauseReason(parts: readonly PartState[]): PauseReason {
  const pausedBy = parts.filter((part) => part.status === 'paused').map((part) => part.pausedBy);
  return reasons.find((reason) => pausedBy.includes(reason)) ?? 'user';
}

/** How far `done` of `total` is, from 0 to 1; null where the total is not known. */
export function fractionOf(done: number, total: number | null): number | null {
  if (total === null || total <= 0) return null;
  return Math.min(1, done / total);
}

/** What an adapter part is stored of, as {@link AdapterChoices} name it; undefined where it is not. */
export function storedChoice({ stored }: ModelEntry, part: AdapterPart): string | undefined {
  return stored.find(({ component }) => component === part)?.sources[0]?.name.split('@')[0];
}

/** The adapters of the profiles that are stored, also those that are not offered any more. */
export function storedAdapters({ manifest, stored }: ModelEntry): readonly ProfileAdapter[] {
  const { standard, 'ultra-fast': fast } = manifest.profiles;
  const known = { adapter: fast.adapters, guidance_adapter: [standard.guidanceAdapter] };
  return adapterParts.flatMap((part) => {
    const source = stored.find(({ component }) => component === part)?.sources[0]?.name;
    if (source === undefined) return [];
    return known[part].find((each) => each && isAdapterFile(each, source)) ?? [];
  });
}

/** The adapters that a model has or is to have: of each kind the stored one, the chosen one, or the default. */
export function adaptersOf(entry: ModelEntry): AdapterChoices | undefined {
  const { manifest, adapters } = entry;
  const offers = {
    adapter: adapterOffers(manifest).map(({ choice }) => choice),
    guidance_adapter: guidanceOffers(manifest).map(({ choice }) => choice),
  };
  if (adapterParts.every((part) => offers[part].length === 0)) return adapters;
  const chosen = adapters ?? offers.adapter.slice(0, 1);
  return adapterParts.flatMap(
    (part) => storedChoice(entry, part) ?? offers[part].filter((choice) => chosen.includes(choice)),
  );
}
