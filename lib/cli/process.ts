import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from './paths';

/** Node's flags of `npm start`: the script of package.json is their one definition. */
export function startFlags(): string[] {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  return scripts.start.split(' ').filter((word: string) => word.startsWith('--'));
}

/** A child process in a group of its own, so that it can be ended with all its children. */
export function startChild(
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; cwd?: string } = {},
): ChildProcess {
  return spawn(process.execPath, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
}

/** Resolves with the exit code; a child ended by a signal counts as 1. */
export function exitCode(child: ChildProcess): Promise<number> {
  if (hasEnded(child)) return Promise.resolve(child.exitCode ?? 1);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

/** Ends a child and its children: asked first, forced after `graceMs`. */
export async function stopTree(child: ChildProcess, graceMs = 3000): Promise<void> {
  if (hasEnded(child)) return;
  // One that never started has ended too.
  const ended = exitCode(child).catch(() => 1);
  signalTree(child, 'SIGTERM');
  const forced = await Promise.race([
    ended.then(() => false),
    delay(graceMs, true, { ref: false }),
  ]);
  if (forced) signalTree(child, 'SIGKILL');
  await ended;
}

/** Sends a signal to a child and its children. */
export function signalTree(child: ChildProcess, signal: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined || hasEnded(child)) return;
  if (process.platform === 'win32') {
    spawnSync('taskkill', ['/pid', String(child.pid), '/T', '/F'], { stdio: 'ignore' });
    return;
  }
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It ended between the check and the signal.
  }
}

/** The output of a child's streams so far, in its order. */
export function outputOf(...streams: readonly (Readable | null)[]): () => string {
  const chunks: Buffer[] = [];
  for (const stream of streams) stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/**
 * Ports that systems give to nobody who asks for any: those begin at 32768 on Linux (ip(7),
 * ip_local_port_range), at 49152 elsewhere. `fetch` refuses none of these.
 */
const [first, end] = [20_000, 32_768];

/**
 * A free port, for what takes it in a while, or gives it up and takes it again. One that the system gave
 * may by then be another's: every test server and every connection asks the system for one.
 *
 * @throws Error when a hundred of them are taken
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(first, end);
    const probe = createServer();
    try {
      await once(probe.listen(port, '127.0.0.1'), 'listening');
    } catch {
      // Taken: another one.
      continue;
    }
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
  throw new Error('There is no free port.');
}
