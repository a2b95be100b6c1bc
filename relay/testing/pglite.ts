import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { openStore } from '../store';
import { migrationsFolder } from '../store/store';

/**
 * A folder with an embedded database that is up to date, made once per version of the engine and of the
 * migrations: making one takes seconds, copying it a moment.
 */
export async function pgliteTemplate(): Promise<string> {
  const engine = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const hash = createHash('sha256').update(engine);
  hash.update(readFileSync(path.join(path.dirname(engine), '..', 'package.json')));
  for (const file of readdirSync(migrationsFolder).sort()) {
    if (file.endsWith('.sql')) hash.update(readFileSync(path.join(migrationsFolder, file)));
  }
  const user = process.getuid?.() ?? 'user';
  const name = `kinora-pglite-${user}-${hash.digest('hex').slice(0, 16)}`;
  const template = path.join(os.tmpdir(), name);
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
