import { createHash, randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { KinoraError } from '../../lib/contract';

/** README.md of this folder describes the file, and the takeover from a dead holder. */
const holderSchema = z.object({
  pid: z.int().positive(),
  /** In ticks since boot: process numbers are given again. Empty where the system does not say. */
  started: z.string(),
  /** Host, boot and PID namespace: containers may share a host name and process numbers. */
  machine: z.string(),
});

export interface LockOptions {
  /** The lock was lost. Called in the same tick as the check, so nothing is written in between. */
  readonly onLost: (sentence: string) => void;
  /** The holder cannot be seen from here; the call watches its file now. */
  readonly onWait?: (sentence: string) => void;
  /** How often the holder touches its file and checks that it is still its own. */
  readonly touchMs?: number;
  /** After this time without a touch, a holder that cannot be seen counts as dead. */
  readonly goneMs?: number;
}

/**
 * Takes the lock that keeps a folder for one process, or takes it over from a dead one.
 *
 * @param what what the lock guards, for messages
 * @returns releases it, unless another process has taken it over
 * @throws Error with one sentence when a living process has it
 */
export async function takeLock(file: string, what: string, options: LockOptions) {
  const { touchMs = 1_000, goneMs = 30_000, onLost, onWait } = options;
  const { pid } = process;
  const text = JSON.stringify({ pid, started: startOf(pid), machine, token: randomUUID() });
  const isOwn = () => read(file)?.text === text;

  /** @returns false where the lock changed meanwhile and has to be read again */
  async function acquire(): Promise<boolean> {
    const dead: Entry[] = [];
    let place = file;
    for (let entry = read(place); entry !== null; entry = read(place)) {
      const state = await livenessOf(entry);
      if (state === 'changed') return false;
      if (state === 'alive')
        throw new KinoraError('BUSY', `${what} is in use by ${nameOf(entry)}. ${remedy}`);
      dead.push(entry);
      // One claim for each dead text. A claim whose process died is claimed in the same way.
      place = `${file}.after-${createHash('sha256').update(entry.text).digest('hex')}`;
    }
    const create = () => fs.writeFileSync(place, text, { mode: 0o600, flag: 'wx' });
    if (attempt(create, 'EEXIST', 'exists') === 'exists') return false;
    if (!dead.every((entry) => isSame(entry, read(entry.path)))) fs.rmSync(place);
    else if (place !== file) {
      fs.renameSync(place, file);
      for (const { path } of dead.slice(1)) fs.rmSync(path, { force: true });
    }
    return isOwn();
  }

  /** A holder that cannot be seen is watched: its file's age is not enough where clocks differ. */
  async function livenessOf(entry: Entry): Promise<'alive' | 'dead' | 'changed'> {
    const running = isRunning(entry);
    if (running !== null) return running ? 'alive' : 'dead';
    const ageMs = Date.now() - entry.touchedMs;
    const limitMs = Math.min(goneMs, Math.max(goneMs - ageMs, 3 * touchMs));
    const text = `${what} may be in use by ${nameOf(entry)}`;
    if (ageMs < goneMs) onWait?.(`${text}: waiting up to ${goneMs / 1000} s to find out.`);
    for (const start = performance.now(); performance.now() - start < limitMs; ) {
      await delay(touchMs / 2);
      const now = read(entry.path);
      if (!isSame(entry, now)) return now?.text === entry.text ? 'alive' : 'changed';
    }
    return 'dead';
  }

  while (!(await acquire()));
  const touch = () => isOwn() && fs.utimesSync(file, new Date(), new Date()) === undefined;
  const touching = setInterval(() => {
    if (attempt(touch, '*', true)) return;
    clearInterval(touching);
    onLost(`${what} no longer belongs to this process: ${file} was taken over or removed.`);
  }, touchMs).unref();
  return async function release(): Promise<void> {
    clearInterval(touching);
    if (isOwn()) fs.rmSync(file, { force: true });
  };
}

type Entry = NonNullable<ReturnType<typeof read>>;

/** Reads the time first: a new text is never taken for a mere touch. NFS caches the time of a path. */
function read(path: string) {
  const opened = attempt(() => fs.openSync(path, 'r'), 'ENOENT', null);
  if (opened === null) return null;
  try {
    const touchedMs = fs.fstatSync(opened).mtimeMs;
    const text = fs.readFileSync(opened, 'utf8');
    // Half a lock has a holder that cannot be seen.
    const { data: holder } = holderSchema.safeParse(attempt(() => JSON.parse(text), '*', null));
    return { path, text, holder, touchedMs };
  } finally {
    fs.closeSync(opened);
  }
}

const isSame = (then: Entry, now: Entry | null) =>
  now?.text === then.text && now.touchedMs === then.touchedMs;

/** @returns null where it cannot be seen from here */
function isRunning({ holder }: Entry): boolean | null {
  if (holder?.machine !== machine) return null;
  const signal = () => attempt(() => process.kill(holder.pid, 0), 'EPERM', true);
  if (!attempt(signal, '*', false)) return false;
  return holder.started === '' ? null : holder.started === startOf(holder.pid);
}

function nameOf({ holder }: Entry): string {
  const where = holder?.machine === machine ? '' : ' of another container or machine';
  return holder ? `process ${holder.pid}${where}` : 'another process';
}

const remedy =
  'Stop it, or give this one another folder with KINORA_DATA, or use PostgreSQL with DATABASE_URL.';

/** The parts that only Linux has (proc(5), pid_namespaces(7)) are empty elsewhere. */
const machine = [
  hostname(),
  attempt(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), '*', ''),
  attempt(() => fs.readlinkSync('/proc/self/ns/pid'), '*', ''),
].join(' ');

/** Field 22 of `/proc/{pid}/stat`; the name before it may hold spaces and brackets. */
function startOf(pid: number): string {
  const stat = attempt(() => fs.readFileSync(`/proc/${pid}/stat`, 'utf8'), '*', '');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

/** The value instead of an error with this code; `*` is every error. */
function attempt<T, V>(work: () => T, code: string, value: V): T | V {
  try {
    return work();
  } catch (error) {
    const is = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === '*' || is === code) return value;
    throw error;
  }
}
