import { type Draft, databaseError, type KinoraDatabase } from './database';

/**
 * Keeps a part of the unfinished form.
 *
 * @param content anything that IndexedDB can hold, files included
 * @throws KinoraError `STORAGE_FULL`
 */
export async function saveDraft(
  database: KinoraDatabase,
  id: Draft['id'],
  content: unknown,
): Promise<void> {
  try {
    await database.drafts.put({ id, content });
  } catch (thrown) {
    throw databaseError(thrown);
  }
}

/** The kept part, unchecked; undefined where there is none. */
export async function loadDraft(database: KinoraDatabase, id: Draft['id']): Promise<unknown> {
  return (await database.drafts.get(id))?.content;
}
