import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../lib/cli/paths';
import { fixtureRate, full, modelFolder } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

const id = 'wan2.2-i2v-a14b';
const twin = path.join(root, 'lib/models/wan/goldens/tiny-wan22-a14b');

/** Paths below a folder of a diffusers model. */
const filesOf = (folder: string, below = '') =>
  readdirSync(path.join(folder, below), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)));

/** The manifest of the real model, for its tiny twin, which has the text encoder of the tiny 5B. */
function twinManifest(files: readonly string[]) {
  const manifest = JSON.parse(readFileSync(path.join(root, `public/models/${id}.json`), 'utf8'));
  const nativeSizes = {
    '1280*720': { width: 64, height: 32 },
    '720*1280': { width: 32, height: 64 },
  };
  return {
    ...manifest,
    files,
    nativeSizes,
    ...fixtureRate,
    sources: [],
    components: ['transformer', 'transformer_2', 'text_encoder', 'vae'].map((part) => ({
      id: part,
    })),
    precision: 'f32',
    profiles: { standard: { scheduler: { kind: 'unipc' }, decoder: 'full' } },
  };
}

test(
  'a tab with the model of two experts takes a job of its family, with a LoRA and an end image',
  full,
  async ({ context, serve, caller, workerToken }) => {
    const own = filesOf(path.join(twin, 'model'));
    const shared = ['text_encoder', 'tokenizer'].flatMap((part) => filesOf(modelFolder, part));
    const manifest = twinManifest([...own, ...shared]);
    await context.route('**/models/index.json', (route) => route.fulfill({ json: [{ id }] }));
    await context.route(`**/models/${id}.json`, (route) => route.fulfill({ json: manifest }));
    await context.route(`**/models/${id}/**`, (route) => {
      const file = new URL(route.request().url()).pathname.split(`/models/${id}/`)[1] ?? '';
      const folder = shared.includes(file) ? modelFolder : path.join(twin, 'model');
      return route.fulfill({ path: path.join(folder, file) });
    });
    await serve.open();
    const lora = await caller.upload(path.join(twin, 'loras/a_comfy.safetensors'));
    const job = await caller.submit({
      duration: 5,
      num_inference_steps: 2,
      last_image: `data:image/png;base64,${readFileSync(path.join(twin, 'last.png'), 'base64')}`,
      loras: [{ path: lora, scale: 1 }],
    });
    await serve.page.evaluate(
      ([model, token]) =>
        window.kinoraServe?.connect({
          token,
          model,
          name: 'Two experts',
          device: { backend: 'wasm' },
        }),
      [id, workerToken] as const,
    );
    const made = await caller.ended(job);
    expect(made).toMatchObject({ status: 'completed', error: '' });
    const video = Buffer.from(await (await fetch(made.outputs[0] ?? '')).arrayBuffer());
    expect(video.subarray(4, 8).toString()).toBe('ftyp');
  },
);
