import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KinoraError } from '../contract';
import { WorkerClient } from './client';
import { Adapters } from './inputs';

const lora = {
  path: 'ann/style',
  scale: 1,
  from: 'hub',
  repository: 'ann/style',
  file: null,
} as const;

test('the half of a pair that is asked for is fetched, under its noise', async () => {
  const client = new WorkerClient({ server: 'http://relay.test', token: 't' });
  const paths = ['style_high.safetensors', 'style_low.safetensors'];
  const fetched: string[] = [];
  const send: typeof fetch = async (input) => {
    const { pathname } = new URL(String(input instanceof Request ? input.url : input));
    if (!pathname.includes('/resolve/')) {
      return Response.json(paths.map((path) => ({ type: 'file', path, size: 3, oid: path })));
    }
    fetched.push(pathname.split('/').at(-1) ?? '');
    const headers = { 'Content-Range': 'bytes 0-2/3', ETag: `"${pathname}"` };
    return new Response('abc', { status: 206, headers });
  };
  const adapters = new Adapters(client, 'https://hub.test', { fetch: send });
  const signal = new AbortController().signal;
  const half = await adapters.fetch({ ...lora, noise: 'low' }, signal);
  expect(half).toMatchObject([{ name: 'ann/style/style_low.safetensors', noise: 'low' }]);
  expect(new Set(fetched)).toEqual(new Set(['style_low.safetensors']));
  expect(await adapters.fetch(lora, signal)).toHaveLength(2);
});

test.each([
  ['LORA_INVALID', 'TENSOR_DTYPE'],
  ['LORA_MISSING', 'HUB_NOT_FOUND'],
  ['STORAGE_FULL', 'STORAGE_FULL'],
  ['SERVER_UNREACHABLE', 'SERVER_UNREACHABLE'],
] as const)('%s is the code of a failure %s', async (code, thrown) => {
  const client = new WorkerClient({ server: 'http://relay.test', token: 't' });
  client.file = () => Promise.reject(new KinoraError(thrown));
  const adapters = new Adapters(client, 'https://hub.test');
  const { signal } = new AbortController();
  const link = { path: 'https://a.test/style', scale: 1, from: 'relay', url: '/lora' } as const;
  const failure = { code, message: expect.stringContaining(link.path) };
  await expect(adapters.fetch(link, signal)).rejects.toMatchObject(failure);
});

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
