import { expect, test } from 'vitest';
import { SerialQueue } from './session';

const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

test('jobs run one after another, in their order', async () => {
  const queue = new SerialQueue();
  const log: string[] = [];
  const job = (name: string, milliseconds: number) =>
    queue.run(async () => {
      log.push(`${name} begins`);
      await wait(milliseconds);
      log.push(`${name} ends`);
      return name;
    });
  expect(await Promise.all([job('slow', 20), job('quick', 0), job('last', 5)])).toEqual([
    'slow',
    'quick',
    'last',
  ]);
  expect(log).toEqual([
    'slow begins',
    'slow ends',
    'quick begins',
    'quick ends',
    'last begins',
    'last ends',
  ]);
});

test('a failed job rejects for its caller and does not stop the others', async () => {
  const queue = new SerialQueue();
  const failed = queue.run(async () => {
    throw new RangeError('no');
  });
  const next = queue.run(async () => 7);
  await expect(failed).rejects.toThrow('no');
  expect(await next).toBe(7);
});

test('a job that throws at once is a rejection too', async () => {
  const queue = new SerialQueue();
  const failed = queue.run(() => {
    throw new RangeError('at once');
  });
  await expect(failed).rejects.toThrow('at once');
  expect(await queue.run(async () => 1)).toBe(1);
});
