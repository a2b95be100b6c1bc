import { createHash, randomBytes } from 'node:crypto';
import { constants, readFileSync } from 'node:fs';
import { copyFile, link, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';

/**
 * A second process on PGlite's folder destroys it without a word (v3-api.md §4). So a file beside it
 * names the one process that has it.
 */

const holderSchema = z.object({
  pid: z.int().positive(),
  /** When the process was started, in ticks since boot; null where the system does not tell. */
  startTicks: z.string().nullable(),
  bootId: z.string().nullable(),
  host: z.string(),
  /** Drawn by the holder: tells two locks of one process apart. */
  token: z.string(),
});
type Holder = z.output<typeof holderSchema>;

/** How often the holder touches the file, and after how long without it a holder elsewhere is gone. */
const touchMs = 5_000;
const goneMs = 30_000;

/** Tokens of locks that this process holds. */
const held = new Set<string>();

/** A held lock. */
export interface Lock {
  /** Gives it back; a lock that another has taken over stays. */
  release(): Promise<void>;
}

/**
 * Takes the lock, or takes over that of a process that is gone.
 *
 * @param file the lock's file
 * @param what what it guards, as the message names it
 * @throws Error with one sentence when a living process holds it
 */
export async function takeLock(file: string, what: string): Promise<Lock> {
  const own: Holder = {
    pid: process.pid,
    startTicks: startTicksOf(process.pid),
    bootId: bootId(),
    host: hostname(),
    token: randomBytes(8).toString('hex'),
  };
  // Linked into place, so that nobody ever reads half a lock.
  const draft = `${file}.${own.token}`;
  // Before the file is in place: another call of this process must not take it for a dead one.
  held.add(own.token);
  await writeFile(draft, JSON.stringify(own), { mode: 0o600 });
  try {
    while (!(await linked(draft, file)) && !(await tookOver(draft, file, what)));
  } catch (error) {
    held.delete(own.token);
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  const touch = setInterval(() => {
    const now = new Date();
    utimes(file, now, now).catch(() => undefined);
  }, touchMs);
  touch.unref();
  return {
    async release() {
      clearInterval(touch);
      if (!held.delete(own.token)) return;
      if ((await read(file))?.holder?.token === own.token) await rm(file, { force: true });
    },
  };
}

interface Found {
  readonly text: string;
  /** Null where the file is no lock of ours. */
  readonly holder: Holder | null;
}

async function read(file: string): Promise<Found | null> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
  try {
    return { text, holder: holderSchema.parse(JSON.parse(text)) };
  } catch {
    return { text, holder: null };
  }
}

async function linked(draft: string, file: string): Promise<boolean> {
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    if (!['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].some((code) => hasCode(error, code))) {
      throw error;
    }
  }
  // A file system without hard links.
  try {
    await copyFile(draft, file, constants.COPYFILE_EXCL);
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
async function tookOver(draft: string, file: string, what: string): Promise<boolean> {
  const dead: { readonly place: string; readonly text: string }[] = [];
  let place = file;
  for (;;) {
    const found = await read(place);
    if (found === null) break;
    if (await lives(found, place)) throw new Error(sentence(found.holder, what));
    dead.push({ place, text: found.text });
    place = claimOn(file, found.text);
  }
  if (dead.length === 0 || !(await linked(draft, place))) return false;
  try {
    for (const { place, text } of dead) if ((await read(place))?.text !== text) return false;
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

async function lives({ holder }: Found, file: string): Promise<boolean> {
  if (holder === null) return false;
  // Another machine or container: its processes cannot be seen, but its touch can.
  if (holder.host !== hostname()) return await touchedLately(file);
  if (holder.bootId !== null && holder.bootId !== bootId()) return false;
  if (holder.pid === process.pid) return held.has(holder.token);
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // Not ours to signal is alive too.
    if (!hasCode(error, 'EPERM')) return false;
  }
  // The number may have been given to another process since.
  return holder.startTicks === null || holder.startTicks === startTicksOf(holder.pid);
}

async function touchedLately(file: string): Promise<boolean> {
  const { mtimeMs } = await stat(file).catch(() => ({ mtimeMs: 0 }));
  return Date.now() - mtimeMs < goneMs;
}

function sentence(holder: Holder | null, what: string): string {
  const where = holder && holder.host !== hostname() ? ` on ${holder.host}` : '';
  return (
    `${what} is in use by process ${holder?.pid ?? '?'}${where}. ` +
    'Stop that process, or give this one another folder with KINORA_DATA, or use PostgreSQL with DATABASE_URL.'
  );
}

/** Field 22 of `/proc/{pid}/stat` (proc(5)); the name before it may hold spaces and brackets. */
function startTicksOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  } catch {
    return null;
  }
}

function bootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return null;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
