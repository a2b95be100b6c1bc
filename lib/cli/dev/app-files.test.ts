import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { buildPlaceholder } from '../../offline/version';
import { finishBuild } from './app-files';

const folder = temporaryFolder();
async function put(name: string, text = name): Promise<void> {
  const file = path.join(folder(), name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}
const worker = '_next/static/service-worker/sw.js';

beforeEach(async () => {
  await put('.next/BUILD_ID', 'b1');
  await put('.next/static/service-worker/sw.js', `start("${buildPlaceholder}")`);
});

it('lists pages, what the router fetches, scripts and public files, each with the time to store it', async () => {
  for (const name of ['index', 'docs/api', '_not-found', 'headless']) {
    await put(`.next/server/app/${name}.html`);
    await put(`.next/server/app/${name}.rsc`);
  }
  await put('.next/server/app/docs.segments/_tree.segment.rsc');
  await put('.next/server/app/icon.svg.body');
  for (const name of [
    'chunks/a.js',
    'chunks/a.js.map',
    'media/engine.1.ts',
    'media/ort.jspi.bundle.mjs',
  ]) {
    await put(`.next/static/${name}`);
  }
  await put('.next/static/media/ort-wasm.asyncify.1.wasm');
  await put('public/ffmpeg/ffmpeg-core.wasm');
  await put('public/models/tiny.json');
  await put('public/readme/studio.png');
  const { files } = await finishBuild(folder());
  expect(files.map(({ path: name, when }) => `${name} ${when}`)).toEqual([
    '/ installed',
    '/?rsc installed',
    '/_next/static/chunks/a.js installed',
    '/_next/static/media/ort-wasm.asyncify.1.wasm asyncify',
    '/_next/static/media/ort.jspi.bundle.mjs jspi',
    '/docs/api installed',
    '/docs/api?rsc installed',
    '/ffmpeg/ffmpeg-core.wasm used',
    '/icon.svg installed',
    '/models/tiny.json installed',
  ]);
  const list = await readFile(path.join(folder(), '.next/static/b1/files.json'), 'utf8');
  expect(JSON.parse(list)).toEqual({ files });
  expect(await readFile(path.join(folder(), '.next/static/service-worker/sw.js'), 'utf8')).toBe(
    'start("b1")',
  );
});

it('lists a static export by the paths of its host', async () => {
  for (const name of ['index.html', 'index.txt', 'models/index.html', '404.html', 'sw.js']) {
    await put(`site/${name}`);
  }
  await put(`site/${worker}`, buildPlaceholder);
  const { files } = await finishBuild(folder(), path.join(folder(), 'site'));
  expect(files.map(({ path: name }) => name)).toEqual(['/', '/index.txt', '/models/']);
  expect(await readFile(path.join(folder(), 'site', worker), 'utf8')).toBe('b1');
});

it('a service worker without a place for its build is an error', async () => {
  await put('.next/static/service-worker/sw.js', 'nothing');
  await put('public/a');
  await put('.next/server/app/a');
  await expect(finishBuild(folder())).rejects.toThrow('has no place');
});
