import { cpSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { generateDrizzleJson, generateMigration } from 'drizzle-kit/api';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { describeContents } from '../../lib/contract/v3';
import { testJobs } from '../testing/jobs';
import { openStore } from '.';
import { migrationsFolder } from './folders';
import * as schema from './schema';

const journalSchema = z.object({ entries: z.array(z.object({ idx: z.int() })) });

it('the migrations make the schema: nothing is left to generate', async () => {
  const meta = path.join(migrationsFolder, 'meta');
  const json = (file: string): unknown => JSON.parse(readFileSync(path.join(meta, file), 'utf8'));
  const last = journalSchema.parse(json('_journal.json')).entries.at(-1)?.idx ?? -1;
  const snapshot = json(`${String(last).padStart(4, '0')}_snapshot.json`);
  const wanted = generateDrizzleJson(schema);
  // Its own file, so its own form.
  const statements = await generateMigration(snapshot as typeof wanted, wanted);
  expect(statements, 'Run npm run migrations.').toEqual([]);
});

const id = (digit: string) => digit.repeat(32);
/** A row in every table, as the schema of migrations 0000 and 0001 had them. */
const oldRows = `
  insert into owners (name, webhook_secret) values ('ada', 'whsec_c2VjcmV0');
  insert into keys (id, kind, owner, name, hash, last4, scopes)
    values ('abcd1234', 'api', 'ada', 'app', 'hash', 'wxyz', '{predictions}');
  insert into jobs (id, owner, key_id, model, input, seed, status, ready, size, duration, models,
    precisions, image, created_at, finished_at, output_key, output_nonce)
    select id, 'ada', key, 'kinora/wan-2.2/i2v-720p-lora',
      jsonb_build_object('image', 'https://example.com/a.png', 'prompt', 'A boat', 'seed', 7,
        'enable_prompt_optimizer', true, 'enable_safety_checker', key = 'abcd1234'), 7, status, true,
      '1280*720', 5, '{*}', '{f32}', '{"key": "inputs/a", "type": "image/png", "bytes": 9}',
      now() - interval '1 hour', null, output, null
    from (values ('${id('1')}', 'abcd1234', 'completed', 'outputs/a.mp4'),
      ('${id('2')}', 'abcd1234', 'processing', null), ('${id('3')}', 'abcd1234', 'created', null),
      ('${id('4')}', 'efgh5678', 'created', null), ('${id('6')}', 'efgh5678', 'completed', null)) as j(id, key, status, output);
  insert into idempotency (key_id, idempotency_key, body_hash, job_id) values
    ('abcd1234', 'order-1', 'hash-1', '${id('1')}'), ('abcd1234', 'order-3', 'hash-3', '${id('3')}'),
    ('efgh5678', 'order-1', 'hash-4', '${id('4')}'),
    ('abcd1234', 'in-flight', 'hash', '${id('9')}'), ('abcd1234', 'no-job', 'hash', null);
  insert into previews (job_id, step, image) values ('${id('2')}', 3, 'data:image/png;base64,AAAA');
  insert into deliveries (id, job_id, owner, url, body)
    values ('msg_1', '${id('1')}', 'ada', 'https://example.com/hook', '{}');
  insert into uploads (id, owner, key_id, filename, content_type, bytes, expires_at)
    values ('${id('5')}', 'ada', 'abcd1234', 'a.png', 'image/png', 9, now() + interval '1 day');
  insert into workers (id, token_id, owner, declaration, state)
    values ('${id('6')}', 'ijkl9012', 'ada', '{"name": "A tab"}', 'paused');
  insert into settings (name, value) values ('secret', 'value');`;

it('a database of the schema before is opened with all it has, old idempotency keys included', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-migration-'));
  try {
    const before = path.join(folder, 'migrations');
    cpSync(migrationsFolder, before, { recursive: true });
    const journal = path.join(before, 'meta', '_journal.json');
    const { entries, ...rest } = JSON.parse(await readFile(journal, 'utf8'));
    await writeFile(journal, JSON.stringify({ ...rest, entries: entries.slice(0, 2) }));
    const client = new PGlite(path.join(folder, 'db'));
    await migrate(drizzle(client), { migrationsFolder: before });
    await client.exec(oldRows);
    await client.close();

    const store = await openStore({ KINORA_DATA: folder });
    const { db } = store;
    const jobs = testJobs(store);
    expect(await jobs.get(id('1'))).toMatchObject({
      status: 'completed',
      input: { prompt: 'A boat', seed: 7 },
      image: { key: 'inputs/a' },
      outputKey: 'outputs/a.mp4',
      idempotencyKey: 'order-1',
      idempotencyHash: 'hash-1',
    });
    const found = async (keyId: string, key: string, hash: string) =>
      (await jobs.submittedBefore(keyId, { key, hash }))?.id ?? null;
    expect(await found('abcd1234', 'order-1', 'hash-1')).toBe(id('1'));
    expect(await found('efgh5678', 'order-1', 'hash-4')).toBe(id('4'));
    expect(await found('abcd1234', 'in-flight', 'hash')).toBeNull();
    await expect(found('abcd1234', 'order-3', 'hash-1')).rejects.toMatchObject({
      code: 'IDEMPOTENCY_MISMATCH',
    });
    expect((await jobs.get(id('2')))?.idempotencyKey).toBeNull();
    // Their videos were not checked, and their flag stays what their webhooks said.
    for (const [job, safety] of [
      ['1', 'unverified'],
      ['6', 'off'],
      ['3', null],
    ] as const) {
      const row = await jobs.get(id(job));
      if (!row) throw new Error('A job is gone.');
      expect(row).toMatchObject({ safety, needsChecker: job !== '6', needsOptimizer: true });
      expect(describeContents(row, ['a.mp4'])).toEqual({
        has_nsfw_contents: [false],
        ...(safety && {
          safety: { status: safety, score: null, model: null, sha256: null },
        }),
      });
    }
    expect(await jobs.preview(id('2'))).toMatchObject({ step: 3 });
    for (const [table, count] of [
      [schema.owners, 1],
      [schema.keys, 1],
      [schema.jobs, 5],
      [schema.deliveries, 1],
      [schema.uploads, 1],
      [schema.workers, 1],
      [schema.settings, 1],
    ] as const) {
      expect(await db.$count(table)).toBe(count);
    }
    const [delivery] = await db
      .select()
      .from(schema.deliveries)
      .where(eq(schema.deliveries.id, 'msg_1'));
    expect(delivery).toMatchObject({ status: 'due', jobId: id('1') });
    await store.close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
