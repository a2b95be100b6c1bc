import { expect, test } from 'vitest';
import { KinoraError, type LibraryApi, type LibrarySnapshot } from '../lib/contract';
import { LibraryStore } from './library-store';

/** A slow machine may take a while. */
const soon = { timeout: 30_000 };
const empty: LibrarySnapshot = {
  hub: 'https://hub.example',
  models: [],
  tools: [],
  loras: [],
  hasHubToken: false,
  loraDownloads: [],
  storage: { usage: 0, quota: 0, persistent: false },
  bytesStored: 0,
};

/** A session whose worker answers from memory and can be made to die. */
function session(answers: Partial<LibraryApi>) {
  let die: (error: KinoraError) => void = () => {};
  const crashed = new Promise<never>((_, reject) => {
    die = reject;
  });
  crashed.catch(() => {});
  const refuse = () => Promise.reject(new KinoraError('INTERNAL'));
  const api = new Proxy(answers, {
    get: (target, name) => Reflect.get(target, name) ?? refuse,
  }) as LibraryApi;
  return { session: { api, crashed }, die };
}

test('the worker starts with the first listener, and every change reaches it', async () => {
  let opened = 0;
  let push: (snapshot: LibrarySnapshot) => void = () => {};
  const worker = session({
    snapshot: async () => empty,
    subscribe: async (listener) => {
      push = listener;
    },
  });
  const store = new LibraryStore({
    open: () => {
      opened += 1;
      return worker.session;
    },
    close: () => {},
  });
  expect(opened).toBe(0);
  const seen: string[] = [];
  const stop = store.subscribe(() => seen.push(store.getSnapshot().status));
  store.subscribe(() => {});
  await expect.poll(() => store.getSnapshot().status, soon).toBe('ready');
  expect(opened).toBe(1);
  push({ ...empty, hub: 'https://mirror.example' });
  expect(store.getSnapshot()).toMatchObject({ snapshot: { hub: 'https://mirror.example' } });
  expect(seen).toEqual(['ready', 'ready']);
  stop();
  push(empty);
  expect(seen).toHaveLength(2);
});

test('a worker that fails ends its calls, is shown as failed, and can be started again', async () => {
  const first = session({ snapshot: () => new Promise(() => {}), subscribe: async () => {} });
  const second = session({ snapshot: async () => empty, subscribe: async () => {} });
  const sessions = [first.session, second.session];
  let closed = 0;
  const store = new LibraryStore({
    open: () => sessions[closed] ?? second.session,
    close: () => {
      closed += 1;
    },
  });
  store.subscribe(() => {});
  const call = store.call((api) => api.snapshot());
  first.die(new KinoraError('INTERNAL', 'It broke.'));
  await expect(call).rejects.toThrow('It broke.');
  await expect
    .poll(() => store.getSnapshot(), soon)
    .toMatchObject({ error: { message: 'It broke.' } });
  store.restart();
  await expect.poll(() => store.getSnapshot().status, soon).toBe('ready');
});
