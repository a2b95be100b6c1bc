import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { prepareAssets } from './prepare-assets';
import { exitCode, signalTree, startChild, stopTree } from './process';
import { isBuilt, root, sourceHash, writeStamp } from './stamp';

const host = '127.0.0.1';
/** Test runners set NODE_ENV to `test`, which Next does not know. */
const nextEnvironment = { NODE_ENV: 'production', NEXT_TELEMETRY_DISABLED: '1' };
const startLimitMs = 60_000;

/** A running app. */
export interface AppServer {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Ends the server and everything it started. */
  stop(): Promise<void>;
}

/**
 * Builds the app unless `.next` already holds a build of exactly these sources.
 *
 * @param say takes one line about what is done
 * @throws Error with the build's output when it fails
 */
export async function ensureBuild(
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<'built' | 'unchanged'> {
  // Served from `public/` as they are, so they have to be there with an older build too.
  await prepareAssets(root);
  const hash = await sourceHash();
  if (isBuilt(hash)) return 'unchanged';
  say('Building the app (once; an unchanged tree is not built again) …');
  const startedAt = performance.now();
  await runQuietly([nextBinary(), 'build'], signal);
  writeStamp(hash);
  say(`Built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
  return 'built';
}

/**
 * Starts `next start` on a free port of this machine only and waits until it answers.
 *
 * The caller stops it; should this process exit without doing so, the server ends with it.
 */
export async function startServer(): Promise<AppServer> {
  const port = await freePort();
  const child = startChild([nextBinary(), 'start', '--hostname', host, '--port', String(port)], {
    env: nextEnvironment,
  });
  const output = collect(child);
  const endWithUs = () => signalTree(child, 'SIGKILL');
  process.once('exit', endWithUs);
  const stop = async () => {
    await stopTree(child);
    process.off('exit', endWithUs);
  };
  const origin = `http://${host}:${port}`;
  try {
    await untilItAnswers(origin, child);
  } catch (error) {
    await stop();
    throw new Error(`The app did not start: ${(error as Error).message}\n${output()}`, {
      cause: error,
    });
  }
  return { origin, stop };
}

async function untilItAnswers(origin: string, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + startLimitMs;
  while (performance.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}.`);
    const answered = await fetch(origin, { method: 'HEAD' }).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await delay(50);
  }
  throw new Error(`no answer within ${startLimitMs / 1000} s.`);
}

/** A port that was free a moment ago. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, host, () => {
      const address = probe.address();
      probe.close(() => {
        if (address && typeof address === 'object') resolve(address.port);
        else reject(new Error('No free port was found.'));
      });
    });
  });
}

/** Runs a Node program; its output is kept back unless it fails. */
async function runQuietly(args: readonly string[], signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const child = startChild(args, { env: nextEnvironment });
  const output = collect(child);
  const stop = () => void stopTree(child);
  const endWithUs = () => signalTree(child, 'SIGKILL');
  signal?.addEventListener('abort', stop);
  process.once('exit', endWithUs);
  try {
    const code = await exitCode(child);
    signal?.throwIfAborted();
    if (code !== 0) {
      const command = path.relative(root, args.join(' '));
      throw new Error(`${command} failed with code ${code}:\n${output()}`);
    }
  } finally {
    signal?.removeEventListener('abort', stop);
    process.off('exit', endWithUs);
  }
}

function collect(child: ChildProcess): () => string {
  const chunks: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8').trimEnd();
}

/** A program of an installed package, to be run by Node itself: no shell, on any system. */
export function binary(name: string, file: string): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return path.join(path.dirname(manifest), file);
}

/** The `next` program. */
export function nextBinary(): string {
  return binary('next', 'dist/bin/next');
}
