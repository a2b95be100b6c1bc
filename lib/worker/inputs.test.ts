import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { WorkerClient } from './client';
import { Adapters } from './inputs';

const lora = {
  path: 'ann/style',
  scale: 1,
  from: 'hub',
  repository: 'ann/style',
  file: null,
} as const;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
afterEach(() => void vi.useRealTimers());

test.each<[string, typeof fetch]>([
  ['refuses connections', () => Promise.reject(new TypeError('Failed to fetch'))],
  [
    'never answers',
    (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
      }),
  ],
  ['is asked too often', async () => new Response(null, { status: 429 })],
])('a hub that %s holds the GPU for twenty seconds at most', async (_, send) => {
  const client = new WorkerClient({ server: 'http://relay.test', token: 't' });
  const adapters = new Adapters(client, 'https://hub.test', { fetch: send });
  let error: unknown = null;
  adapters.fetch(lora, new AbortController().signal).catch((thrown: unknown) => {
    error = thrown;
  });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(error).toMatchObject({
    code: expect.stringMatching(/^HUB_(UNREACHABLE|BUSY)$/),
    message: expect.stringContaining('ann/style'),
    remedy: expect.stringContaining('The server gives the job out again.'),
  });
});
