import { databaseError, type KinoraDatabase } from './database';

/** A setting of this browser, not validated; undefined if it was never saved. */
export async function loadSetting(database: KinoraDatabase, key: string): Promise<unknown> {
  return (await database.settings.get(key))?.content;
}

/**
 * Saves a setting of this browser.
 *
 * @param content any value that IndexedDB can store
 * @throws KinoraError `STORAGE_FULL`
 */
export async function saveSetting(
  database: KinoraDatabase,
  key: string,
  content: unknown,
): Promise<void> {
  try {
    await database.settings.put({ id: key, content });
  } catch (thrown) {
    throw databaseError(thrown);
  }
}
