import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { chmod, cp } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { RunAs } from './postgres-binaries';

const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'];

/**
 * Puts the files of a fresh PostgreSQL into a folder that does not exist yet. They are made once per
 * version and copied from then on: making them takes seconds, copying a moment.
 *
 * @throws Error with what `initdb` says
 */
export async function copyPostgresData(binaries: string, user: RunAs, data: string): Promise<void> {
  await cp(await template(binaries, user), data, { recursive: true });
  own(data, user);
  await chmod(data, 0o700);
}

async function template(binaries: string, user: RunAs): Promise<string> {
  const initdb = path.join(binaries, 'bin', 'initdb');
  const made = path.join(
    os.tmpdir(),
    `kinora-pgdata-${process.getuid?.() ?? 'user'}-${Math.trunc(statSync(initdb).mtimeMs)}`,
  );
  if (existsSync(made)) return made;
  const draft = mkdtempSync(`${made}-`);
  try {
    own(draft, user);
    const data = path.join(draft, 'data');
    const child = spawn(initdb, ['-D', data, ...options], {
      ...user,
      cwd: draft,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { NODE_ENV: 'test', PATH: process.env.PATH ?? '', TZ: 'UTC' },
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`PostgreSQL's files were not made: ${said}`);
    if (!existsSync(made)) renameSync(data, made);
  } catch (error) {
    // Another process may have been first.
    if (!existsSync(made)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return made;
}

function own(folder: string, { uid, gid }: RunAs): void {
  if (uid === undefined || gid === undefined) return;
  chownSync(folder, uid, gid);
  for (const name of readdirSync(folder, { recursive: true })) {
    chownSync(path.join(folder, String(name)), uid, gid);
  }
}
