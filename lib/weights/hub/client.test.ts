import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type LocalHub, startHub } from '../testing/hub/server';
import { HubClient } from './client';
import { briefPolicy, systemClock } from './retry';
import { hubByteSource } from './source';

let hub: LocalHub;
const repository = 'owner/model';

beforeAll(async () => {
  hub = await startHub();
  hub.repositories.put(repository, 'config.json', '{"a":1}');
  hub.repositories.put(repository, 'deep/er/weights a+b.gguf', new Uint8Array(10_000).fill(3));
});
afterAll(() => hub.close());
afterEach(() => {
  hub.heal();
  hub.forget();
});

function client(attempts = 3) {
  return new HubClient(hub.url, { policy: { attempts, firstDelayMs: 1, longestDelayMs: 2 } });
}

test('a repository is listed at its commit, with the hash of every file', async () => {
  const listing = await client().list(repository, 'main');
  expect(listing.commit).toBe(hub.repositories.commit(repository));
  expect(listing.files.get('config.json')).toMatchObject({
    bytes: 7,
    sha256: null,
    identity: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  const large = listing.files.get('deep/er/weights a+b.gguf');
  expect(large).toMatchObject({ bytes: 10_000, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(large?.identity).toBe(large?.sha256);
});

test('it is asked once, and again after a failure', async () => {
  const one = client(1);
  hub.fail({
    fault: { kind: 'status', status: 503 },
    path: `/tree/${hub.repositories.commit(repository)}`,
  });
  await expect(one.list(repository, 'main')).rejects.toMatchObject({ code: 'HUB_BUSY' });
  await Promise.all([one.list(repository, 'main'), one.list(repository, 'main')]);
  const trees = hub.requests.filter(({ path }) => path.includes('/tree/'));
  expect(trees).toHaveLength(2);
});

test('a caller that gives up ends its own wait, not the request that another waits for', async () => {
  const one = client();
  const first = new AbortController();
  const given = one.list(repository, 'main', first.signal);
  const other = one.list(repository, 'main', new AbortController().signal);
  first.abort(new Error('given up'));
  await expect(given).rejects.toThrow('given up');
  expect((await other).files.size).toBe(2);
});

test('a list of many files comes in pages', async () => {
  for (let i = 0; i < 9; i++) hub.repositories.put('owner/many', `${i}.txt`, `file ${i}`);
  const listing = await client().list('owner/many', 'main');
  expect([...listing.files.keys()]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8].map((i) => `${i}.txt`));
  expect(hub.requests.filter(({ path }) => path.includes('/tree/'))).toHaveLength(3);
});

test('a hub that never answers is given up, and so is one that refuses: soon, where one waits', async () => {
  const waits: number[] = [];
  const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) };
  const silent = new HubClient(hub.url, {
    clock,
    policy: { ...briefPolicy, attempts: 2, stallMs: 20 },
    fetch: (_, init) =>
      new Promise((_resolve, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      ),
  });
  const unreachable = { code: 'HUB_UNREACHABLE' };
  await expect(silent.list(repository, 'main')).rejects.toMatchObject(unreachable);
  hub.fail({ fault: { kind: 'reset' }, times: 1000 });
  const refused = new HubClient(hub.url, { clock, policy: briefPolicy });
  await expect(refused.list(repository, 'main')).rejects.toMatchObject({
    ...unreachable,
    message: `The hub ${new URL(hub.url).host} cannot be reached: there is no connection.`,
    remedy: expect.stringContaining('the hub address, or use local files'),
  });
  expect(waits.reduce((sum, ms) => sum + ms)).toBeLessThan(3000);
});

test('a wait beyond the limit is not begun', async () => {
  let now = 0;
  const late = new HubClient(hub.url, {
    clock: { ...systemClock, now: () => (now += 1500), sleep: async () => undefined },
    policy: { ...briefPolicy, attempts: 100 },
  });
  hub.fail({ fault: { kind: 'reset' }, times: 1000 });
  await expect(late.list(repository, 'main')).rejects.toMatchObject({ code: 'HUB_UNREACHABLE' });
  expect(hub.requests.length).toBeLessThan(4);
});

test('a list is tried again where the connection fails', async () => {
  hub.fail({ fault: { kind: 'reset' }, times: 2 });
  await expect(client().list(repository, 'main')).resolves.toBeDefined();
});

test('what is not there is named', async () => {
  await expect(client().list('owner/nothing', 'main')).rejects.toMatchObject({
    code: 'HUB_NOT_FOUND',
    message: expect.stringContaining('owner/nothing'),
  });
  await expect(
    client().file({ repository, path: 'no.gguf', revision: 'main' }),
  ).rejects.toMatchObject({
    code: 'HUB_NOT_FOUND',
    message: expect.stringContaining('no.gguf'),
  });
});

test('a repository that does not exist is 401 with a reason on the real hub', async () => {
  const headers = { 'X-Error-Code': 'RepoNotFound' };
  hub.fail({ fault: { kind: 'status', status: 401, headers } });
  await expect(client().list(repository, 'main')).rejects.toMatchObject({ code: 'HUB_NOT_FOUND' });
  hub.fail({ fault: { kind: 'status', status: 401 } });
  await expect(client().list(repository, 'main')).rejects.toMatchObject({ code: 'HUB_DENIED' });
});

test('a repository whose terms must be accepted says so', async () => {
  const headers = { 'X-Error-Code': 'GatedRepo' };
  hub.fail({ fault: { kind: 'status', status: 401, headers }, path: 'weights a+b.gguf' });
  const one = client();
  const file = await one.file({ repository, path: 'deep/er/weights a+b.gguf', revision: 'main' });
  await expect(hubByteSource(one, file).read(0, 10)).rejects.toMatchObject({
    code: 'HUB_DENIED',
    message: expect.stringContaining(
      `The makers ask you to accept their terms at ${hub.url}/${repository}`,
    ),
  });
});

test('a path is fetched whatever characters it has, small files from the hub itself', async () => {
  const one = client();
  const large = { repository, path: 'deep/er/weights a+b.gguf', revision: 'main' };
  const bytes = await hubByteSource(one, await one.file(large)).read(0, 10_000);
  expect(bytes.every((value) => value === 3)).toBe(true);
  const small = { repository, path: 'config.json', revision: 'main' };
  const text = await hubByteSource(one, await one.file(small)).read(0, 7);
  expect(new TextDecoder().decode(text)).toBe('{"a":1}');
  expect(hub.requests.at(-1)).toMatchObject({ host: 'hub', status: 206 });
});

test('a link to a file elsewhere has its size, and a web page is refused', async () => {
  const one = client();
  const url = one.fileUrl(repository, 'main', 'deep/er/weights a+b.gguf');
  const file = await one.link(url);
  expect(file).toMatchObject({ size: 10_000, sha256: null });
  expect(await hubByteSource(one, file).read(9_990, 10_000)).toHaveLength(10);
  const page = new HubClient(hub.url, {
    fetch: async () => new Response('<html>', { headers: { 'Content-Type': 'text/html' } }),
  });
  await expect(page.link('https://example.org/x')).rejects.toMatchObject({
    code: 'HUB_ANSWER_INVALID',
  });
});

test('an answer that is not the API is refused', async () => {
  for (const body of ['<html>', '{"sha":1}', '[1]', '']) {
    const odd = new HubClient(hub.url, { fetch: async () => new Response(body) });
    await expect(odd.list(repository, 'main')).rejects.toMatchObject({
      code: 'HUB_ANSWER_INVALID',
    });
  }
});

test.each(['file', 'link'] as const)(
  'a %s that an impatient client found is confirmed with the patience of the one that fetches it',
  async (kind) => {
    const [brief, patient] = [client(1), client(4)];
    const path = 'deep/er/weights a+b.gguf';
    const found =
      kind === 'file'
        ? await brief.file({ repository, path, revision: 'main' })
        : await brief.link(`${brief.fileUrl(repository, 'main', path)}?token=secret`);
    expect(found.name).not.toContain('secret');
    const { signal } = new AbortController();
    const away = () => hub.fail({ fault: { kind: 'status', status: 503 }, times: 3 });
    away();
    await expect(found.confirm(signal, brief)).rejects.toMatchObject({ code: 'HUB_BUSY' });
    hub.heal();
    away();
    await found.confirm(signal, patient);
  },
);

test('no message on a link names its query', async () => {
  const url = `${hub.url}/nowhere.bin?token=secret`;
  await expect(client().link(url)).rejects.toThrow(/nowhere\.bin(?!.*secret)/);
  const page = new HubClient(hub.url, {
    fetch: async () => new Response('<html>', { headers: { 'Content-Type': 'text/html' } }),
  });
  await expect(page.link(url)).rejects.toThrow(/nowhere\.bin(?!.*secret)/);
  hub.fail({ fault: { kind: 'status', status: 503 }, times: 9 });
  await expect(client().link(url)).rejects.toThrow(/nowhere\.bin(?!.*secret)/);
});
