import { afterEach, beforeEach, expect, test } from 'vitest';
import { KinoraDatabase } from '../database';
import { cleanUp } from '../testing/clean-up';
import { newInput } from '../testing/input';
import { RequestQueue } from './queue';

let queue: RequestQueue;

beforeEach(() => {
  queue = new RequestQueue(new KinoraDatabase(`test-${crypto.randomUUID()}`));
});

afterEach(() => cleanUp(queue.database));

/** Adds requests with these prompts. */
async function add(...prompts: readonly string[]): Promise<void> {
  await queue.add(await Promise.all(prompts.map((prompt) => newInput({ prompt }))), []);
}

async function prompts(): Promise<string> {
  return (await queue.list()).map(({ input }) => input.parameters.prompt).join(' ');
}

async function idOf(prompt: string): Promise<string> {
  const entries = await queue.list();
  return entries.find(({ input }) => input.parameters.prompt === prompt)?.id ?? '';
}

test('entries keep their order, and are moved to any place of it', async () => {
  await add('a', 'b');
  await add('c', 'd');
  expect(await prompts()).toBe('a b c d');
  for (const [prompt, index, order] of [
    ['d', 0, 'd a b c'],
    ['a', 2, 'd b a c'],
    ['d', 9, 'b a c d'],
    ['a', 1, 'b a c d'],
    ['b', 3, 'a c d b'],
    ['none', 0, 'a c d b'],
  ] as const) {
    await queue.move(await idOf(prompt), index);
    expect(await prompts()).toBe(order);
  }
});

test('an entry is duplicated behind itself, replaced in its place, removed and brought back', async () => {
  await add('a', 'b', 'c');
  await queue.setPauseAfter(await idOf('b'), true);
  await queue.duplicate(await idOf('b'));
  expect(await prompts()).toBe('a b b c');
  expect((await queue.list()).map(({ pauseAfter }) => pauseAfter)).toEqual([
    ...[false, true, false, false],
  ]);

  const thumbnail = new Blob(['small'], { type: 'image/jpeg' });
  expect(await queue.replace(await idOf('a'), await newInput({ prompt: 'z' }), thumbnail)).toBe(
    true,
  );
  expect(await prompts()).toBe('z b b c');
  expect((await queue.list())[0]?.thumbnail?.type).toBe('image/jpeg');

  const ids = (await queue.list()).map(({ id }) => id);
  const removed = await queue.remove(ids.slice(0, 3));
  expect(await prompts()).toBe('c');
  expect(await queue.replace(ids[0] ?? '', await newInput(), null)).toBe(false);
  await queue.restore(removed);
  expect(await prompts()).toBe('z b b c');
});

test('a paused queue gives nothing out', async () => {
  await add('a');
  await queue.pause();
  expect(await queue.runnable()).toEqual([]);
  expect(await queue.pauseState()).toEqual({ reason: 'asked' });
  await queue.unpause();
  expect(await queue.pauseState()).toBeNull();
  expect((await queue.runnable())[0]?.input.parameters.prompt).toBe('a');
});
