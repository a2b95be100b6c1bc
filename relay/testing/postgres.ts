import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, realpathSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../../lib/cli/process';
import { postgresBinaries, type RunAs, runAs } from './postgres-binaries';

/** How often a server is started that does not start. */
const mostTries = 3;

/** A PostgreSQL server of this process. */
export interface TestPostgres {
  /** Address of its first, empty database. */
  readonly url: string;
  /** Makes an empty database. @returns its address */
  database(name: string): Promise<string>;
  /** Stops it at once and removes its files; never fails. */
  stop(): Promise<void>;
}

/**
 * A real PostgreSQL on 127.0.0.1 and a free port, with an empty folder of its own. It ends with this
 * process, however that ends.
 *
 * With `DATABASE_URL_TEST` that server is used instead, and keeps its databases' names: each is
 * dropped before it is made.
 *
 * @param options.durable waits for the disk as a real server does; tests need not
 */
export async function startPostgres(options: { durable?: boolean } = {}): Promise<TestPostgres> {
  const given = process.env.DATABASE_URL_TEST;
  if (given)
    return { url: given, database: (name) => createDatabase(given, name), async stop() {} };

  const user = runAs();
  const binaries = await postgresBinaries();
  for (let tries = 1; ; tries += 1) {
    try {
      return await startServer(binaries, user, options.durable === true);
    } catch (error) {
      // Between choosing a port and taking it, another process may have taken it.
      if (tries === mostTries) throw error;
    }
  }
}

async function startServer(binaries: string, user: RunAs, durable: boolean): Promise<TestPostgres> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'kinora-pg-'));
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = path.join(folder, 'data');
  const port = await freePort();
  const guard = startGuarded(folder, user, [
    [
      path.join(binaries, 'bin', 'initdb'),
      ...['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'],
    ],
    [
      path.join(binaries, 'bin', 'postgres'),
      ...['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', ''],
      ...settings(durable),
    ],
  ]);
  const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
  try {
    await answers(url, data, guard);
  } catch (error) {
    await guard.stop();
    throw error;
  }
  return { url, database: (name) => createDatabase(url, name), stop: guard.stop };
}

function settings(durable: boolean): string[] {
  const chosen = {
    max_connections: '200',
    shared_buffers: durable ? '256MB' : '64MB',
    log_min_messages: 'fatal',
    // A database is copied file by file: faster than through the log for small ones.
    ...(!durable && { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  };
  return Object.entries(chosen).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

interface Guarded {
  readonly ended: () => string | null;
  stop(): Promise<void>;
}

/**
 * A small process between this one and the server. It runs the commands one after the other; when its
 * input closes, because this process closes it or is gone, it ends the running one and removes the
 * folder. Not in this process's group: an interrupt of the terminal reaches only us.
 */
const guardScript = `
const { spawn } = require('node:child_process');
const { rmSync } = require('node:fs');
const { folder, user, commands } = JSON.parse(process.argv[1]);
let child, closing = false;
const finish = (code) => { rmSync(folder, { recursive: true, force: true, maxRetries: 5 }); process.exit(code); };
const next = () => {
  const command = commands.shift();
  if (closing || !command) return finish(closing ? 0 : 1);
  child = spawn(command[0], command.slice(1), { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], env: { PATH: process.env.PATH ?? '', TZ: 'UTC' } });
  child.on('error', (error) => { console.error(error.message); finish(1); });
  child.on('exit', (code) => (code === 0 || closing ? next() : finish(1)));
};
process.stdin.on('end', () => { closing = true; child?.kill('SIGQUIT'); }).on('error', () => {}).resume();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
next();
`;

function startGuarded(
  folder: string,
  user: RunAs,
  commands: readonly (readonly string[])[],
): Guarded {
  const guard: ChildProcess = spawn(
    process.execPath,
    ['-e', guardScript, JSON.stringify({ folder, user, commands })],
    { stdio: ['pipe', 'ignore', 'pipe'], detached: true },
  );
  let said = '';
  guard.stderr?.on('data', (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-2000);
  });
  let end: string | null = null;
  guard.once('error', (error) => {
    end = error.message;
  });
  const exit = once(guard, 'exit').then(() => {
    end ??= said;
  });
  // Nothing of it keeps this process alive.
  guard.unref();
  for (const stream of [guard.stdin, guard.stderr]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
  return {
    ended: () => end,
    async stop() {
      guard.ref();
      guard.stdin?.end();
      // It is to end in any way.
      await exit.catch(() => undefined);
    },
  };
}

/** Waits for the server with this folder: at the port another one may be listening. */
async function answers(url: string, data: string, guard: Guarded): Promise<void> {
  for (const start = Date.now(); ; await delay(30)) {
    const end = guard.ended();
    if (end !== null) throw new Error(`PostgreSQL did not start: ${end}`);
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query('show data_directory');
      if (realpathSync(String(rows[0]?.data_directory)) === realpathSync(data)) return;
      throw new Error('The port is another server’s.');
    } catch (cause) {
      if (Date.now() - start > 60_000) throw new Error('PostgreSQL did not start.', { cause });
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}

async function createDatabase(server: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    const quoted = client.escapeIdentifier(name);
    await client.query(`drop database if exists ${quoted} with (force)`);
    await client.query(`create database ${quoted} strategy file_copy`);
  } finally {
    await client.end();
  }
  const url = new URL(server);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}
