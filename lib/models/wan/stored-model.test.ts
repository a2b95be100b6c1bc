import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openModel } from '../../pipeline/open';
import type { StoreFolder } from '../../weights/store';
import { diskStore } from '../../weights/store/testing/disk';
import { modelFamilies } from '..';
import { tinyManifest } from './testing/model';
import { hosted, installGoldenModel } from './testing/stored';

const families = { wan22: modelFamilies.wan22 };
const source = {
  component: 'transformer',
  files: [{ repository: 'owner/name', path: 'model.gguf', revision: 'main' }],
} as const;
const listed = {
  ...tinyManifest({ id: 'listed' }),
  components: [{ id: 'transformer' }],
  sources: [source],
};

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
      const id = ['listed', 'absent'].find((one) => request.url === `/${one}.json`);
      response.writeHead(id ? 200 : 404, { 'content-type': 'application/json' });
      response.end(id ? JSON.stringify({ ...listed, id }) : 'nothing');
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

  const open = (id: string) => openModel(id, { families, manifests: base, store });

  test('a listed one comes from the store', async () => {
    expect(await open('listed')).toMatchObject({ installed: true });
  });

  test('an added one brings its manifest from there too', async () => {
    expect((await open('added')).manifest.id).toBe('added');
  });

  test('one that is listed but not installed says so', async () => {
    await expect(open('absent')).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
    const nowhere = openModel('absent', { families, manifests: base });
    await expect(nowhere).rejects.toMatchObject({ code: 'MODEL_NOT_INSTALLED' });
  });

  test('an unknown one', async () => {
    await expect(open('unknown')).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
    await expect(open('../listed')).rejects.toMatchObject({ code: 'MODEL_UNKNOWN' });
  });

  test('one of a family that this version does not have', async () => {
    const folder = store.folder('foreign');
    const manifest = { ...tinyManifest({ id: 'foreign' }), base: undefined, family: 'wan9' };
    await folder.writeText('model.json', JSON.stringify(manifest));
    await expect(open('foreign')).rejects.toMatchObject({
      code: 'MODEL_MANIFEST_INVALID',
      message: 'The model "Tiny" is of the family "wan9", which this version cannot run.',
    });
  });
});
