import { readFileSync, readlinkSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import { z } from 'zod';

const holderSchema = z.object({
  pid: z.int().positive(),
  /** When the process was started, in ticks since boot; null where the system does not tell. */
  startTicks: z.string().nullable(),
  bootId: z.string().nullable(),
  /** The PID namespace, in which alone `pid` means anything; null where the system does not tell. */
  pidSpace: z.string().nullish(),
  host: z.string(),
  /** Drawn by the holder: tells two locks of one process apart. */
  token: z.string(),
});

/** Who holds a lock, as its file says it. */
export type Holder = z.output<typeof holderSchema>;

/** What stands in a lock's file. */
export interface Found {
  readonly text: string;
  /** Null where it is no lock of ours, or half of one. */
  readonly holder: Holder | null;
  /** When the file was last touched, in ms since 1970 as its file system tells. */
  readonly touchedMs: number;
}

/** This process as the holder that `token` names. */
export function thisProcess(token: string): Holder {
  const { pid } = process;
  const { host, bootId, pidSpace } = here();
  return { pid, startTicks: startTicksOf(pid), bootId, pidSpace, host, token };
}

/** @returns null where there is no such file */
export async function readLock(file: string): Promise<Found | null> {
  const handle = await open(file).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  });
  if (handle === null) return null;
  try {
    // In this order, so that a text which is written meanwhile is never taken for a mere touch. Of the
    // open file: NFS may tell the times of a path from memory.
    const touchedMs = (await handle.stat()).mtimeMs;
    const text = await handle.readFile('utf8');
    return { text, holder: parsed(text), touchedMs };
  } finally {
    await handle.close();
  }
}

function parsed(text: string): Holder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/**
 * Whether the holder's process is there.
 *
 * @param held tokens of the locks that this process holds
 * @returns null where it cannot be seen from here: on another machine, or in another container, which
 * may have the same host name and the same process numbers
 */
export function isRunning(holder: Holder | null, held: ReadonlySet<string>): boolean | null {
  const { host, bootId, pidSpace } = here();
  if (holder === null || holder.host !== host || holder.bootId !== bootId) return null;
  if (holder.pidSpace === undefined) {
    // Written before namespaces were told: who is found as told is the one, who is not may be elsewhere.
    return holder.pid !== process.pid && isThere(holder) ? true : null;
  }
  if (holder.pidSpace !== pidSpace) return null;
  if (holder.pid === process.pid) return held.has(holder.token);
  return isThere(holder);
}

/** @returns null where the number may have been given to another process since */
function isThere({ pid, startTicks }: Holder): boolean | null {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Not ours to signal is alive too.
    if (!hasCode(error, 'EPERM')) return false;
  }
  return startTicks === null ? null : startTicks === startTicksOf(pid);
}

/** The holder as a sentence names it. */
export function named(holder: Holder | null): string {
  if (holder === null) return 'another process';
  const { host, bootId, pidSpace } = here();
  const name = `process ${holder.pid}`;
  if (holder.host !== host) return `${name} on ${holder.host}`;
  const near = holder.bootId === bootId && (holder.pidSpace ?? null) === pidSpace;
  return near ? name : `${name} of another container or machine named ${host}`;
}

/** Where a process number means one process. */
function here() {
  return { host: hostname(), bootId: bootIdOf(), pidSpace: pidSpaceOf() };
}

/** Field 22 of `/proc/{pid}/stat` (proc(5)); the name before it may hold spaces and brackets. */
function startTicksOf(pid: number): string | null {
  return told(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
  });
}

function bootIdOf(): string | null {
  return told(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
}

/** pid_namespaces(7). */
function pidSpaceOf(): string | null {
  return told(() => readlinkSync('/proc/self/ns/pid'));
}

/** What only Linux tells. */
function told(read: () => string | null): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Whether an error of the file system has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
