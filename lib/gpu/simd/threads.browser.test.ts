import * as Comlink from 'comlink';
import { expect, test } from 'vitest';

test('threads share the parts of a job, and each part is computed once', async () => {
  const worker = new Worker(new URL('./testing/counting-threads.ts', import.meta.url), {
    type: 'module',
  });
  const addUp = Comlink.wrap<() => { jobs: number; helped: number; wrong: number }>(worker);
  const { jobs, helped, wrong } = await addUp();
  expect(jobs).toBeGreaterThanOrEqual(1000);
  expect(helped).toBeGreaterThanOrEqual(2000);
  expect(wrong).toBe(0);
  worker.terminate();
});
