import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { root as project } from '../paths';
import { prepareAssets } from './prepare-assets';

const root = temporaryFolder();
const put = async (path: string, content: string) => {
  await mkdir(dirname(join(root(), path)), { recursive: true });
  await writeFile(join(root(), path), content);
};

beforeEach(async () => {
  await put('lib/models/wan/goldens/tiny-wan22-ti2v/model/model_index.json', '{}');
  await put('lib/models/wan/goldens/tiny-wan22-ti2v/model/vae/config.json', '{"a":1}');
  await put(
    'lib/models/wan/goldens/tiny-wan22-ti2v/formats/tiny-decoder-base.safetensors',
    'tiny decoder',
  );
  await put(
    'lib/models/wan/goldens/tiny-wan22-ti2v/loras/b_lightx2v_diff_b.safetensors',
    'adapter',
  );
  await put('lib/models/wan/goldens/tiny-wan22-ti2v/loras/a_peft.safetensors', 'guidance adapter');
  await put('node_modules/@ffmpeg/ffmpeg/dist/esm/worker.js', 'worker');
  await put('node_modules/@ffmpeg/ffmpeg/dist/esm/worker.d.ts', 'types');
  await put('node_modules/@ffmpeg/core/dist/esm/ffmpeg-core.js', 'js');
  await put('node_modules/@ffmpeg/core/dist/esm/ffmpeg-core.wasm', 'wasm');
  await put('node_modules/@wllama/wllama/esm/wasm/wllama.wasm', 'wasm');
});

test('copies what is missing, then nothing', async () => {
  expect((await prepareAssets(root())).sort()).toEqual([
    'public/ffmpeg/ffmpeg-core.js',
    'public/ffmpeg/ffmpeg-core.wasm',
    'public/ffmpeg/worker.js',
    'public/models/tiny/adapter/adapter.safetensors',
    'public/models/tiny/guidance_adapter/adapter.safetensors',
    'public/models/tiny/model_index.json',
    'public/models/tiny/tiny_decoder/diffusion_pytorch_model.safetensors',
    'public/models/tiny/vae/config.json',
    'public/openapi.json',
    'public/wllama/wllama.wasm',
  ]);
  expect(await readFile(join(root(), 'public/models/tiny/vae/config.json'), 'utf8')).toBe(
    '{"a":1}',
  );
  expect(JSON.parse(await readFile(join(root(), 'public/openapi.json'), 'utf8')).openapi).toBe(
    '3.1.0',
  );
  expect(await prepareAssets(root())).toEqual([]);
  expect(await readdir(join(root(), 'public/ffmpeg'))).toHaveLength(3);
});

test('copies again what changed or was cut short', async () => {
  await prepareAssets(root());
  await put('public/ffmpeg/ffmpeg-core.wasm', 'w');
  await put('public/openapi.json', '{}');
  const changed = 'lib/models/wan/goldens/tiny-wan22-ti2v/model/vae/config.json';
  await put(changed, '{"a":2}');
  await utimes(join(root(), changed), 2e9, 2e9);
  expect((await prepareAssets(root())).sort()).toEqual([
    'public/ffmpeg/ffmpeg-core.wasm',
    'public/models/tiny/vae/config.json',
    'public/openapi.json',
  ]);
  expect(await readFile(join(root(), 'public/models/tiny/vae/config.json'), 'utf8')).toBe(
    '{"a":2}',
  );
});

test('two runs at once leave whole files', async () => {
  await Promise.all([prepareAssets(root()), prepareAssets(root())]);
  expect(await readFile(join(root(), 'public/ffmpeg/ffmpeg-core.wasm'), 'utf8')).toBe('wasm');
  expect(await readdir(join(root(), 'public/ffmpeg'))).toHaveLength(3);
});

test('a source that is missing is an error', async () => {
  await rm(join(root(), 'node_modules'), { recursive: true });
  await expect(prepareAssets(root())).rejects.toMatchObject({ code: 'ENOENT' });
});

test('a manifest names exactly the files that lie in the folder of its model', async () => {
  await prepareAssets(project);
  const folder = join(project, 'public/models');
  const index = JSON.parse(await readFile(join(folder, 'index.json'), 'utf8'));
  for (const { id } of index) {
    const entries = await readdir(join(folder, id), { recursive: true, withFileTypes: true });
    const paths = entries
      .filter((entry) => entry.isFile() && entry.name !== 'README.md')
      .map((entry) => relative(join(folder, id), join(entry.parentPath, entry.name)));
    const { files } = JSON.parse(await readFile(join(folder, `${id}.json`), 'utf8'));
    expect(files, id).toEqual(paths.map((path) => path.replaceAll('\\', '/')).sort());
  }
});
