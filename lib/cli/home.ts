import { access, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { hasSafetyChecker, type LibrarySnapshot } from '../contract';
import { fromUser, root } from './paths';

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
