import type { StoreFolder } from './folder';
import type { Installation } from './installation';
import { keptFiles } from './kept-start';
import { rowRanges } from './layout';
import { deleteManifest } from './manifest';
import type { Plan } from './units';

/** Leaves what the journal tells where the installation can go on from there, or else begins anew. */
export async function prepare(installation: Installation, replaces: boolean): Promise<void> {
  const { options, print, journal } = installation;
  const obstacle = replaces ? null : await findObstacle(installation);
  if (!replaces && journal.state.state === 'underway' && obstacle === null) return;
  if (obstacle !== null) options.onRestart?.(obstacle);
  await journal.remove();
  await discard(options.folder);
  const sources = options.sources.map(({ name, identity, size }) => ({ name, identity, size }));
  await journal.append({ type: 'begin', plan: print, sources });
}

/** Deletes what only an installation needs. */
export async function removeTraces(folder: StoreFolder): Promise<void> {
  for (const name of await folder.list()) {
    if (name === 'journal' || isKeptStart(name)) await folder.remove(name);
  }
}

/** Why the installation cannot go on from the journal's state; null when it can, or when there is no journal. */
async function findObstacle(installation: Installation): Promise<string | null> {
  const { options, plan, print, hash } = installation;
  const { state } = installation.journal;
  if (state.state === 'none') return null;
  if (state.state === 'broken') return 'The record of what was fetched so far is damaged.';
  const changed = options.sources.find(({ identity, size }, i) => {
    const before = state.sources[i];
    return before && (before.identity !== identity || before.size !== size);
  });
  if (changed) return `${changed.name} was changed at its source.`;
  if (state.plan !== print) return 'It was begun from other files or in another form.';
  for (const [pack, bytes] of writtenBytes(plan, state.units.length)) {
    const file = await options.folder.open(pack);
    if (!file || file.size < bytes) return `${pack} is not as it was written.`;
  }
  if (state.hash !== null && !(await hash.resume(state.hash))) {
    return 'It was begun by another version.';
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
