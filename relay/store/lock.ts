import { createHash, randomBytes } from 'node:crypto';
import { closeSync, constants, futimesSync, openSync, readFileSync } from 'node:fs';
import { copyFile, link, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Found,
  type Holder,
  hasCode,
  isRunning,
  named,
  readLock,
  thisProcess,
} from './lock-holder';

/**
 * A second process on PGlite's folder destroys it without a word (v3-api.md §4). So a file beside it
 * names the one process that has it.
 */

/** A held lock. */
export interface Lock {
  /** Gives it back; a lock that another has taken over stays. */
  release(): Promise<void>;
}

/** How a lock is taken and held. */
export interface LockOptions {
  /**
   * The lock is not this process's any more: what it guards must not be used from here on. Nothing
   * else of this process runs between the look that found it and this call.
   */
  readonly onLost: (sentence: string) => void;
  /** It cannot be seen whether the holder lives: the call watches its lock, and this says so. */
  readonly onWait?: (sentence: string) => void;
  /** How often the holder touches the file, and looks whether it is its own still. */
  readonly touchMs?: number;
  /** After how long without a touch a holder that cannot be seen is gone. */
  readonly goneMs?: number;
}

/** Often, as whoever wakes from a long sleep may write until it looks. */
const usualTouchMs = 1_000;
const usualGoneMs = 30_000;

/** Tokens of locks that this process holds. */
const held = new Set<string>();

/**
 * Takes the lock, or takes over that of a process that is gone. Where that cannot be seen, up to
 * `goneMs` pass until it is known.
 *
 * @param file the lock's file
 * @param what what it guards, as the sentences name it
 * @throws Error with one sentence when a living process holds it
 */
export async function takeLock(file: string, what: string, options: LockOptions): Promise<Lock> {
  const { touchMs = usualTouchMs, goneMs = usualGoneMs } = options;
  const own: Holder = thisProcess(randomBytes(8).toString('hex'));
  const text = JSON.stringify(own);
  const taking: Taking = {
    file,
    // Linked into place, so that nobody ever reads half a lock.
    draft: `${file}.${own.token}`,
    goneMs,
    stillMs: 3 * touchMs,
    lookMs: touchMs / 2,
    refused: (holder) => new Error(inUse(what, holder)),
    onWait: (holder) => options.onWait?.(mayBeInUse(what, holder, goneMs)),
  };
  // Before the file is in place: another call of this process must not take it for a dead one.
  held.add(own.token);
  try {
    await writeFile(taking.draft, text, { mode: 0o600 });
    while (!(await linked(taking.draft, file)) && !(await tookOver(taking)));
  } catch (error) {
    held.delete(own.token);
    throw error;
  } finally {
    await rm(taking.draft, { force: true });
  }
  const touch = setInterval(() => {
    if (touched(file, text)) return;
    clearInterval(touch);
    held.delete(own.token);
    options.onLost(
      `${what} is not this process's any more: its lock ${file} was taken over or removed.`,
    );
  }, touchMs);
  touch.unref();
  return {
    async release() {
      clearInterval(touch);
      if (!held.delete(own.token)) return;
      if ((await readLock(file))?.text === text) await rm(file, { force: true });
    },
  };
}

/**
 * Touches the lock that says `own`. In one go, so that nothing is written after another's lock was
 * seen, and through the open file, so that it is never another's that is touched.
 *
 * @returns false where it is another's, or gone: whoever took it over may be done with it already
 */
function touched(file: string, own: string): boolean {
  try {
    const open = openSync(file, 'r+');
    try {
      if (readFileSync(open, 'utf8') !== own) return false;
      const now = new Date();
      futimesSync(open, now, now);
    } finally {
      closeSync(open);
    }
  } catch (error) {
    // A disk that fails for a moment takes nothing over.
    return !hasCode(error, 'ENOENT');
  }
  return true;
}

interface Taking {
  readonly file: string;
  /** A whole lock of ours, not in place yet. */
  readonly draft: string;
  readonly goneMs: number;
  /** How long a lock that seems old is watched all the same. */
  readonly stillMs: number;
  /** How often a lock that is watched is looked at. */
  readonly lookMs: number;
  readonly refused: (holder: Holder | null) => Error;
  readonly onWait: (holder: Holder | null) => void;
}

async function linked(draft: string, place: string): Promise<boolean> {
  // The touch goes with it: it was written before what may have been a long wait.
  const now = new Date();
  await utimes(draft, now, now);
  try {
    await link(draft, place);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].some((code) => hasCode(error, code))) {
      throw error;
    }
  }
  // A file system without hard links: here half a lock can be read for a moment.
  try {
    await copyFile(draft, place, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/**
 * Takes the lock over from a holder that is gone. To remove a dead lock and then link one's own would
 * let a slow process remove a new one, which it never looked at. So each dead lock can be claimed
 * once, by a file named after what it says; the claim counts if the lock still says the same when
 * the claim stands, and takes the lock's place in one rename. A claim whose owner died is claimed alike.
 *
 * @returns false where the lock has changed meanwhile
 * @throws Error with one sentence when a living process holds it
 */
async function tookOver(taking: Taking): Promise<boolean> {
  const { draft, file } = taking;
  const dead: { readonly place: string; readonly found: Found }[] = [];
  let place = file;
  for (;;) {
    const found = await readLock(place);
    if (found === null) break;
    const fate = await fateOf(found, place, taking);
    if (fate === 'changed') return false;
    if (fate === 'lives') throw taking.refused(found.holder);
    dead.push({ place, found });
    place = claimOn(file, found.text);
  }
  if (dead.length === 0 || !(await linked(draft, place))) return false;
  try {
    for (const { place, found } of dead) {
      const now = await readLock(place);
      // One that is touched again was not dead but asleep.
      if (now?.text !== found.text || now.touchedMs !== found.touchedMs) return false;
    }
    await rename(place, file);
    for (const { place } of dead.slice(1)) await rm(place, { force: true });
    return true;
  } finally {
    // After the rename nothing is there, and nobody claims what the lock does not say any more.
    await rm(place, { force: true });
  }
}

/** Where the one claim on a dead lock stands, by what that lock says. */
function claimOn(file: string, text: string): string {
  return `${file}.after-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

/**
 * What became of the holder. One that cannot be seen is watched: it touches its lock, or the rest of
 * half a lock comes, or it is gone. A touch that only lies ahead of this machine's clock proves nothing.
 */
async function fateOf(
  found: Found,
  place: string,
  { goneMs, stillMs, lookMs, onWait }: Taking,
): Promise<'lives' | 'gone' | 'changed'> {
  const running = isRunning(found.holder, held);
  if (running !== null) return running ? 'lives' : 'gone';
  const start = performance.now();
  const isOld = () => Date.now() - found.touchedMs >= goneMs;
  // Clocks of two machines differ: what seems old must also stand still while it is watched.
  const watchedMs = () => performance.now() - start;
  const isGone = () => watchedMs() >= goneMs || (isOld() && watchedMs() >= stillMs);
  if (!isOld()) onWait(found.holder);
  while (!isGone()) {
    await delay(lookMs);
    const now = await readLock(place);
    if (now?.text !== found.text) return 'changed';
    if (now.touchedMs !== found.touchedMs) return 'lives';
  }
  return 'gone';
}

function inUse(what: string, holder: Holder | null): string {
  return (
    `${what} is in use by ${named(holder)}. ` +
    'Stop that process, or give this one another folder with KINORA_DATA, or use PostgreSQL with DATABASE_URL.'
  );
}

function mayBeInUse(what: string, holder: Holder | null, goneMs: number): string {
  return `${what} may be in use by ${named(holder)}: looking for up to ${goneMs / 1000} s whether it is.`;
}
