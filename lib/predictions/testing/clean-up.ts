import type Dexie from 'dexie';
import { listRuns, removeRun } from '../run-files';
import { listVideos, removeVideo } from '../videos';

/**
 * Deletes the database of a test and every stored file. A read that is still open would block the
 * deletion; a write begins when the reads before it have ended.
 */
export async function cleanUp(database: Dexie): Promise<void> {
  await Promise.all(database.tables.map((table) => table.clear()));
  await database.delete();
  for (const file of await listVideos()) await removeVideo(file);
  for (const { id } of await listRuns()) await removeRun(id);
}
