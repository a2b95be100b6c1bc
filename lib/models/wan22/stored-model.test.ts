import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { StoreFolder } from '../../weights/store';
import { diskStore } from '../../weights/store/testing/disk';
import { openBundledModel } from './model';
import { tinyManifest } from './testing/model';
import { hosted, installGoldenModel } from './testing/stored';

const source = {
  component: 'transformer',
  files: [{ repository: 'owner/name', path: 'model.gguf', revision: 'main' }],
} as const;
const listed = { ...tinyManifest({ id: 'listed' }), sources: [source] };

describe('a model by its id', () => {
  let root: string;
  let store: StoreFolder;
  let server: Server;
  let base: URL;

  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'kinora-models-'));
    store = diskStore(root);
    await installGoldenModel(store.folder('listed'), hosted, 'int8');
    await installGoldenModel(store.folder('added'), hosted, 'int8');
    const manifest = JSON.stringify({ ...tinyManifest({ id: 'added' }), base: undefined });
    await store.folder('added').writeText('model.json', manifest);
    server = createServer((request, response) => {
      const known = request.url === '/listed.json' || request.url === '/absent.json';
      response.writeHead(known ? 200 : 404, { 'content-type': 'application/json' });
      response.end(known ? JSON.stringify(listed) : 'nothing');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    base = new URL(`http://127.0.0.1:${port}/`);
  });
  afterAll(async () => {
    server.close();
    await rm(root, { recursive: true });
  });

  test('a listed one comes from the store', async () => {
    expect(await openBundledModel('listed', base, store)).toMatchObject({ packed: true });
  });

  test('an added one brings its manifest from there too', async () => {
    const model = await openBundledModel('added', base, store);
    expect(model.manifest.id).toBe('added');
  });

  test('one that is listed but not installed says so', async () => {
    for (const where of [store, undefined]) {
      const opening = openBundledModel('absent', base, where);
      await expect(opening).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
    }
  });

  test('one that nobody knows', async () => {
    const opening = openBundledModel('unknown', base, store);
    await expect(opening).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
  });
});
