import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { idempotency } from '../store/schema';
import { openTestStore, type TestStore } from '../testing/store';
import { confirm, forget, giveBack, reserve, sweepIdempotency } from './idempotency';

let fixture: TestStore;
beforeAll(async () => {
  fixture = await openTestStore('pglite');
}, 60_000);
afterAll(() => fixture?.close(), 60_000);

const request = (name: string, bodyHash = 'one') => ({
  keyId: 'abcd1234',
  idempotencyKey: name,
  bodyHash,
});
const hex = () => randomBytes(16).toString('hex');
const never = async () => false;
const always = async () => true;
/** Makes a row as old as that. */
const age = (name: string, interval: string) =>
  fixture.store.db
    .update(idempotency)
    .set({ createdAt: sql`now() - ${interval}::interval` })
    .where(sql`${idempotency.idempotencyKey} = ${name}`);

test('a key whose job never came is free after a minute, and not before', async () => {
  const { store } = fixture;
  const [first, second] = [hex(), hex()];
  expect(await reserve(store, request('a'), first, never)).toEqual({ mine: true, jobId: first });
  await expect(reserve(store, request('a'), second, never)).rejects.toMatchObject({
    code: 'IDEMPOTENCY_IN_FLIGHT',
  });
  await age('a', '61 seconds');
  expect(await reserve(store, request('a'), second, never)).toEqual({ mine: true, jobId: second });
});

test('an answer is kept a day, and then the key is as new', async () => {
  const { store } = fixture;
  const [first, second] = [hex(), hex()];
  await reserve(store, request('b'), first, never);
  await age('b', '23 hours');
  expect(await reserve(store, request('b'), second, always)).toEqual({ mine: false, jobId: first });
  await expect(reserve(store, request('b', 'two'), second, always)).rejects.toMatchObject({
    code: 'IDEMPOTENCY_MISMATCH',
  });
  await age('b', '25 hours');
  expect(await reserve(store, request('b', 'two'), second, always)).toEqual({
    mine: true,
    jobId: second,
  });
});

test('only the request that has a key gives it back', async () => {
  const { store } = fixture;
  const [first, second] = [hex(), hex()];
  await reserve(store, request('c'), first, never);
  await giveBack(store, request('c'), second);
  expect(await reserve(store, request('c'), second, always)).toEqual({ mine: false, jobId: first });
  await giveBack(store, request('c'), first);
  expect(await reserve(store, request('c'), second, never)).toMatchObject({ mine: true });
});

test('a key is confirmed for as long again, and only by the request that has it', async () => {
  const { store } = fixture;
  const [first, second] = [hex(), hex()];
  await reserve(store, request('d'), first, never);
  await age('d', '61 seconds');
  await confirm(store, request('d'), first);
  const lost = { code: 'IDEMPOTENCY_IN_FLIGHT' };
  await expect(reserve(store, request('d'), second, never)).rejects.toMatchObject(lost);
  await age('d', '61 seconds');
  await reserve(store, request('d'), second, never);
  await expect(confirm(store, request('d'), first)).rejects.toMatchObject(lost);
  await giveBack(store, request('d'), second);
  await expect(confirm(store, request('d'), second)).rejects.toMatchObject(lost);
});

test('a sweep removes what is older than a day', async () => {
  const { store } = fixture;
  await reserve(store, request('old'), hex(), never);
  await reserve(store, request('new'), hex(), never);
  await age('old', '25 hours');
  await sweepIdempotency(store);
  const rows = await store.db.select({ name: idempotency.idempotencyKey }).from(idempotency);
  expect(rows.map(({ name }) => name)).toContain('new');
  expect(rows.map(({ name }) => name)).not.toContain('old');
});

test('the key of a deleted job is as new', async () => {
  const { store } = fixture;
  const [first, second] = [hex(), hex()];
  await reserve(store, request('e'), first, never);
  await forget(store, [second]);
  expect(await reserve(store, request('e'), second, always)).toEqual({ mine: false, jobId: first });
  await forget(store, [first, second]);
  expect(await reserve(store, request('e', 'two'), second, never)).toEqual({
    mine: true,
    jobId: second,
  });
});
