import { at } from '../../contract/at';
import type { StoreFolder } from './folder';
import type { Installation } from './installation';
import { keptFiles } from './kept-start';
import { rowRanges } from './layout';
import { deleteManifest } from './manifest';
import type { Plan } from './units';

/** Brings the folder into the state that the journal describes, as far as it can be used, or begins anew. */
export async function prepare(installation: Installation, replaces: boolean): Promise<void> {
  const { options, plan, print, prints, journal } = installation;
  const { folder, sources, onRestart } = options;
  const obstacle = replaces ? null : await findObstacle(installation);
  if (!replaces && journal.state.state === 'underway' && obstacle === null) return;
  if (obstacle !== null) onRestart?.(obstacle.reason);
  const keep = obstacle?.keep ?? 0;
  if (keep > 0) {
    await journal.rewind(firstUnit(plan, keep));
    await trim(installation);
  } else {
    await journal.remove();
    await discard(folder);
  }
  await journal.append({
    type: 'begin',
    plan: print,
    sources: sources.map(({ name, identity, size }, i) => ({
      name,
      identity,
      size,
      print: at(prints, i),
    })),
  });
}

/** Forgets what came of this source and of those after it. Not to be called while packs are open. */
export async function forget({ options, plan, journal }: Installation, source: number) {
  if (source === 0) return options.folder.clear();
  await journal.rewind(firstUnit(plan, source));
  // Its header may be another one by now.
  for (const name of Object.values(keptFiles(source))) await options.folder.remove(name);
}

/** Deletes what only an installation needs. */
export async function removeTraces(folder: StoreFolder): Promise<void> {
  for (const name of await folder.list()) {
    if (name === 'journal' || isKeptStart(name)) await folder.remove(name);
  }
}

interface Obstacle {
  readonly reason: string;
  /** So many sources are not concerned. */
  readonly keep: number;
}

/** Why the installation cannot go on from the journal's state; null when it can, or when there is no journal. */
async function findObstacle(installation: Installation): Promise<Obstacle | null> {
  const { options, plan, print, prints, hash } = installation;
  const { state } = installation.journal;
  if (state.state === 'none') return null;
  if (state.state === 'broken') {
    return { reason: 'The record of what was fetched so far is damaged.', keep: 0 };
  }
  const whole = state.digests.length; // Sources that are wholly read.
  const differs = prints.findIndex((own, i) => state.sources[i]?.print !== own);
  const keep = Math.min(whole, differs < 0 ? whole : differs);
  // What is not kept was perhaps written by another plan.
  const kept = state.plan === print ? state.units.length : firstUnit(plan, keep);
  for (const [pack, bytes] of writtenBytes(plan, kept)) {
    const file = await options.folder.open(pack);
    if (!file || file.size < bytes) return { reason: `${pack} is not as it was written.`, keep: 0 };
  }
  const [before, now] = [state.sources[differs], options.sources[differs]];
  if (before && now && (before.identity !== now.identity || before.size !== now.size)) {
    return { reason: `${now.name} was changed at its source.`, keep };
  }
  if (state.plan !== print) {
    return { reason: 'It was begun from other files or in another form.', keep };
  }
  if (state.hash !== null && !(await hash.resume(state.hash))) {
    return { reason: 'It was begun by another version.', keep };
  }
  return null;
}

/** How long each pack must be when so many units are done. */
function writtenBytes({ units, conversions }: Plan, done: number): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { tensor, firstRow, rows } of units.slice(0, done).flatMap((unit) => unit.pieces)) {
    const conversion = conversions[tensor];
    if (!conversion) continue;
    const { place, recipe } = conversion;
    const { elements, scales } = rowRanges(place, firstRow, rows);
    const end = recipe.reorder ? place.offset + place.bytes : (scales ?? elements)[1];
    bytes.set(place.pack, Math.max(bytes.get(place.pack) ?? 0, end));
  }
  return bytes;
}

/** The first unit of a source: their number where all sources come before it. */
function firstUnit({ units }: Plan, source: number): number {
  const found = units.findIndex((unit) => unit.source >= source);
  return found < 0 ? units.length : found;
}

/** Deletes what is of no use for the layout, and cuts packs that are longer than in it. */
async function trim({ options: { folder }, layout }: Installation): Promise<void> {
  await deleteManifest(folder);
  for (const name of await folder.list()) {
    const size = layout.packs.get(name);
    if (size === undefined) {
      if (name !== 'journal' && !isKeptStart(name)) await folder.remove(name);
      continue;
    }
    const writer = await folder.write(name);
    try {
      if (writer.size > size) await writer.truncate(size);
    } finally {
      await writer.close();
    }
  }
}

/** Deletes what an installation wrote, but not the start of a source, which belongs to the next one. */
async function discard(folder: StoreFolder): Promise<void> {
  // The manifest first: a component without one is not there.
  await deleteManifest(folder);
  for (const name of await folder.list()) {
    if (!isKeptStart(name)) await folder.remove(name);
  }
}

function isKeptStart(name: string): boolean {
  const index = Number(/^start-(\d+)\./.exec(name)?.[1] ?? Number.NaN);
  return Object.values(keptFiles(index)).includes(name);
}
