import { existsSync } from 'node:fs';
import { cp, mkdtemp, rename, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openStore } from '../store';
import { databaseName } from '../store/pglite';

/**
 * A folder with an embedded database that is up to date, made once per version of the engine and of the
 * migrations: making one takes seconds, copying it a moment.
 */
export async function pgliteTemplate(): Promise<string> {
  const user = process.getuid?.() ?? 'user';
  const template = path.join(os.tmpdir(), `kinora-pglite-${user}-${databaseName()}`);
  if (existsSync(template)) return template;
  const draft = await mkdtemp(`${template}-`);
  const store = await openStore({ KINORA_DATA: draft });
  await store.close();
  try {
    await rename(draft, template);
  } catch {
    // Another test file was first.
    await rm(draft, { recursive: true, force: true });
  }
  return template;
}

/** A new folder with an empty database, for one node. */
export async function pgliteFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-test-'));
  await cp(await pgliteTemplate(), folder, { recursive: true });
  return folder;
}
