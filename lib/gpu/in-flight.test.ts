import { expect, test } from 'vitest';
import { InFlight } from './in-flight';

/** A submission that a test ends. */
function submission() {
  let end = () => {};
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end };
}

/** Whether a promise has resolved, a turn of the event loop later. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  let done = false;
  void work.then(() => {
    done = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 5));
  return done;
}

test('work of a second, or two submissions, may be before the device', async () => {
  const inFlight = new InFlight();
  const [a, b, c] = [submission(), submission(), submission()];
  expect(await isDone(inFlight.add(a.done, 5))).toBe(true);
  expect(await isDone(inFlight.add(b.done, 5))).toBe(true);
  const third = inFlight.add(c.done, 5);
  expect(await isDone(third)).toBe(false);
  a.end();
  expect(await isDone(third)).toBe(true);
});

test('64 submissions may be before it, however short they are', async () => {
  const inFlight = new InFlight();
  const first = submission();
  await inFlight.add(first.done, 1e-6);
  for (let i = 0; i < 63; i++) await inFlight.add(submission().done, 1e-6);
  const next = inFlight.add(submission().done, 1e-6);
  expect(await isDone(next)).toBe(false);
  first.end();
  expect(await isDone(next)).toBe(true);
});

test('data for buffers bounds it too: 256 MiB, which wait for the work before them', async () => {
  const inFlight = new InFlight();
  const [first, second, third] = [submission(), submission(), submission()];
  inFlight.wrote(2 ** 28);
  expect(await isDone(inFlight.add(first.done, 1e-6))).toBe(true);
  // Nothing that waits is more than the bound.
  expect(await isDone(inFlight.add(second.done, 1e-6))).toBe(true);
  inFlight.wrote(16);
  const next = inFlight.add(third.done, 1e-6);
  expect(await isDone(next)).toBe(false);
  first.end();
  expect(await isDone(next)).toBe(true);
});
