import { constants } from 'node:fs';
import {
  access,
  mkdir,
  readdir,
  readFile,
  realpath,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasSafetyChecker, KinoraError, type LibrarySnapshot } from '../contract';

/** The project's folder, that of package.json; without a slash at its end. */
export const root = path.resolve(fileURLToPath(new URL('../..', import.meta.url)));

/** A path as the person meant it: npm runs scripts in the project's folder, wherever one stands. */
export function fromUser(file: string): string {
  return path.resolve(process.env.INIT_CWD || process.cwd(), file);
}

/**
 * A file, or all files of a folder: where each lies, symbolic links resolved, and its path inside of the folder, the
 * folder's name first. The cache of the hub's own tools consists of links, which browsers do not follow.
 *
 * @throws KinoraError `FILE_UNREADABLE` for a link to what is not there
 */
export async function filesIn(
  file: string,
  inside = path.basename(file),
  above: readonly string[] = [],
): Promise<{ at: string; inside: string }[]> {
  const at = await realpath(file).catch((cause) => {
    throw new KinoraError('FILE_UNREADABLE', `${file} leads to no file.`, { cause });
  });
  if (!(await stat(at)).isDirectory()) return [{ at, inside }];
  // A link to a folder that it lies in would never end.
  if (above.includes(at)) return [];
  const names = (await readdir(at)).sort();
  const below = names.map((name) =>
    filesIn(path.join(at, name), `${inside}/${name}`, [...above, at]),
  );
  return (await Promise.all(below)).flat();
}

/** Paths of all files below a folder, `/` between parts. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .map((file) => file.split(path.sep).join('/'));
}

/** The folders above `file` that do not exist yet, the outermost first. */
async function missingFolders(file: string): Promise<string[]> {
  const missing: string[] = [];
  let folder = path.dirname(file);
  // It does not exist yet, or cannot be read: then making it fails with the reason.
  while (!(await stat(folder).catch(() => undefined))) {
    missing.unshift(folder);
    folder = path.dirname(folder);
  }
  return missing;
}

/**
 * Makes the folders above a file one by one (a recursive `mkdir` never returns on some file systems).
 *
 * @returns the ones that were made, the outermost first
 */
export async function makeFolders(file: string): Promise<string[]> {
  const missing = await missingFolders(file);
  for (const folder of missing) await mkdir(folder);
  return missing;
}

/**
 * Checks, before any work, that a file can be written in the end; leaves nothing behind.
 *
 * @throws KinoraError `FILE_UNWRITABLE`
 */
export async function checkWritable(file: string): Promise<void> {
  try {
    const stats = await stat(file).catch(() => undefined);
    if (stats?.isDirectory()) throw new Error('it is a folder');
    if (stats) await access(file, constants.W_OK);
    const created = await makeFolders(file);
    await access(path.dirname(file), constants.W_OK);
    const folder = await stat(path.dirname(file));
    for (const name of created.reverse()) await rmdir(name);
    if (!folder.isDirectory()) throw new Error('its folder is a file');
  } catch (cause) {
    throw new KinoraError(
      'FILE_UNWRITABLE',
      `${file} cannot be written: ${(cause as Error).message}.`,
      { cause, remedy: 'Give another place with --out.' },
    );
  }
}

/** Folder in which the command line keeps models: `KINORA_HOME`, else `.kinora` in the project. */
export function kinoraHome(): string {
  const chosen = process.env.KINORA_HOME;
  return chosen ? fromUser(chosen) : path.join(root, '.kinora');
}

const addedFile = 'added-models.json';
const checkerFile = 'safety-checker-installed';

/**
 * Notes what the next command must know before a browser starts: which models were added, so that a
 * wrong id is refused, and whether there is a safety checker, so that it is used for the bundled model.
 */
export async function noteLibrary(home: string, { models }: LibrarySnapshot): Promise<void> {
  const added = models.filter(({ origin }) => origin === 'added');
  const ids = added.map(({ manifest }) => manifest.id);
  await writeFile(path.join(home, addedFile), JSON.stringify(ids));
  const note = path.join(home, checkerFile);
  if (models.some(hasSafetyChecker)) await writeFile(note, '');
  else await rm(note, { force: true });
}

/** Whether a safety checker was installed, as of the last command that looked. */
export function notedSafetyChecker(home: string): Promise<boolean> {
  return access(path.join(home, checkerFile)).then(
    () => true,
    () => false,
  );
}

/** Ids of the models that were added, as of the last command that looked. */
export async function addedIds(home: string): Promise<readonly string[]> {
  const text = await readFile(path.join(home, addedFile), 'utf8').catch(() => '[]');
  try {
    const ids: unknown = JSON.parse(text);
    return Array.isArray(ids) ? ids.filter((id) => typeof id === 'string') : [];
  } catch {
    // Damaged: as if nothing was added.
    return [];
  }
}
