import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { importTestPackage } from '../../lib/cli/dev/test-packages';
import { migrationsFolder } from './folders';
import * as schema from './schema';

/** The part of npm `drizzle-kit` that is used. */
interface DrizzleKit {
  generateDrizzleJson(tables: object): object;
  generateMigration(before: unknown, after: object): Promise<readonly string[]>;
}

const journalSchema = z.object({ entries: z.array(z.object({ idx: z.int() })) });

it('the migrations make the schema: nothing is left to generate', async () => {
  const meta = path.join(migrationsFolder, 'meta');
  const json = (file: string): unknown => JSON.parse(readFileSync(path.join(meta, file), 'utf8'));
  const last = journalSchema.parse(json('_journal.json')).entries.at(-1)?.idx ?? -1;
  const snapshot = json(`${String(last).padStart(4, '0')}_snapshot.json`);
  const { generateDrizzleJson, generateMigration } =
    await importTestPackage<DrizzleKit>('drizzle-kit/api.mjs');
  const wanted = generateDrizzleJson(schema);
  // Its own file, so its own form.
  const statements = await generateMigration(snapshot, wanted);
  expect(statements, 'Run npm run migrations.').toEqual([]);
});
