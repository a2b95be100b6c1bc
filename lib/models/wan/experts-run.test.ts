import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import type { ModelManifest } from '../../contract';
import { testManifest } from '../../contract/testing/manifest';
import type { ModelFolder } from '../../weights';
import { diskFolder } from '../../weights/testing/files';
import { modelFamilies } from '..';
import { memoryStorage, shortRun } from '../testing/short-run';
import { conditionName } from './condition';
import type { WanModel } from './model';
import { nodeBackend, tinyFolder } from './testing/model';
import { smoothImage } from './testing/video';

const goldens = fileURLToPath(new URL('./goldens/', import.meta.url));
const backend = nodeBackend();
afterAll(() => backend.dispose());

/** A twin, with text encoder and tokenizer of the 5B's. */
function folderOf(name: string): ModelFolder {
  const own = diskFolder(`${goldens}${name}/model/`);
  const of = (path: string) => (/^(text_encoder|tokenizer)\//.test(path) ? tinyFolder : own);
  return {
    open: (path) => of(path).open(path),
    json: (path) => of(path).json(path),
    exists: (path) => of(path).exists(path),
    text: (path) => of(path).text(path),
  };
}

const openTwin = (name: string, fields: Partial<ModelManifest> = {}) => {
  const sizes = { '1280*720': { width: 64, height: 32 }, '720*1280': { width: 32, height: 64 } };
  const manifest = testManifest({ id: name, family: 'wan14b', nativeSizes: sizes, ...fields });
  return modelFamilies.wan14b.open(manifest, folderOf(name)) as Promise<WanModel>;
};

test('a video of two experts, which goes on in the second one where it was paused', {
  tags: ['full'],
  timeout: 120_000,
}, async () => {
  const model = await openTwin('tiny-wan22-a14b');
  const whole = await shortRun(backend, model, 9, memoryStorage());
  expect(whole.frames).toHaveLength(9);
  const storage = memoryStorage();
  // Two of four steps at shift 5 are above the boundary.
  await expect(shortRun(backend, model, 9, storage, { pauseAt: 3 })).rejects.toMatchObject({
    code: 'PAUSED',
  });
  const resumed = await shortRun(backend, model, 9, storage, { resumes: true });
  expect(resumed.steps).toEqual([4]);
  expect(resumed.frames).toEqual(whole.frames);
  expect(backend.counters().liveBytes).toBe(0);
});

test('a picture in the middle is one more picture of the conditioned clip', async () => {
  const model = await openTwin('tiny-wan22-a14b');
  const image = smoothImage({ width: 64, height: 32 });
  const { signal } = new AbortController();
  const conditionOf = async (...frames: number[]) => {
    const images = frames.map((frame) => ({ frame, image }));
    const { [conditionName]: condition } = await model.encodeImages(backend, images, 9, signal);
    return condition ?? new Float32Array();
  };
  const [first, middle] = [await conditionOf(0), await conditionOf(0, 6)];
  // [4 + 16, 3, 4, 8]: frame 6 is the second of the third latent frame.
  const plane = (of: Float32Array, channel: number, latent: number) => {
    const start = (channel * 3 + latent) * 32;
    return of.slice(start, start + 32);
  };
  const masked = [0, 1, 2, 3].flatMap((channel) =>
    [0, 1, 2].map((latent) => plane(middle, channel, latent)[0]),
  );
  expect(masked).toEqual([1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0]);
  // What comes before knows nothing of it.
  expect(plane(middle, 4, 1)).toEqual(plane(first, 4, 1));
  expect(plane(middle, 4, 2)).not.toEqual(plane(first, 4, 2));
});

test('a manifest that lets a clip hold latents is refused: it starts from pictures alone', async () => {
  const continuation = { latents: 2, keepsMotion: true };
  await expect(openTwin('tiny-wan22-a14b', { continuation })).rejects.toMatchObject({
    code: 'MODEL_MANIFEST_INVALID',
  });
});

test('a LoRA for one expert changes only what that one computes', async () => {
  const model = await openTwin('tiny-wan22-a14b');
  const bytes = await readFile(`${goldens}tiny-wan22-a14b/loras/a_comfy.safetensors`);
  const file = new File([new Uint8Array(bytes)], 'lora');
  const withLora = (name: string) => model.withLoras([{ name, file, scale: 0.8 }]);
  const [high, low, both] = [
    await withLora('style_high_noise'),
    await withLora('style_low_noise'),
    await withLora('style'),
  ];
  const counts = ({ loras }: WanModel) => [...loras.values()].map(({ branches }) => branches.size);
  expect([high, low, both].map(counts)).toEqual([
    [10, 0],
    [0, 10],
    [10, 10],
  ]);
  expect(new Set([high, low, both].map(({ fingerprint }) => fingerprint)).size).toBe(3);
});

test('a LoRA with an image branch fits A14B, which leaves the branch out', async () => {
  const bytes = await readFile(`${goldens}tiny-wan21-i2v/loras/a_comfy.safetensors`);
  const lora = { name: 'image', file: new File([new Uint8Array(bytes)], 'lora'), scale: 1 };
  const adapted = async (name: string) => (await openTwin(name)).withLoras([lora]);
  const branches = ({ loras }: WanModel) => loras.get('transformer')?.branches.size;
  expect(branches(await adapted('tiny-wan21-i2v'))).toBe(14);
  const a14b = await adapted('tiny-wan22-a14b');
  expect(branches(a14b)).toBe(10);
  expect(a14b.notes).toEqual([expect.stringContaining('8 tensors for an image branch')]);
});

test('what is counted by the configuration is what the opened model plans', async () => {
  for (const name of ['tiny-wan22-a14b', 'tiny-wan21-i2v']) {
    const model = await openTwin(name);
    const counted = await modelFamilies.wan14b.count('f32', folderOf(name));
    const native = { width: 64, height: 32, frames: 9 };
    const plan = await counted.planMemory({ native });
    expect(plan.full).toEqual((await model.planMemory({ native })).full);
  }
});

test('two LoRAs alike without names are refused with the remedy, not given to both experts', async () => {
  const bytes = await readFile(`${goldens}tiny-wan22-a14b/loras/a_comfy.safetensors`);
  const file = new File([new Uint8Array(bytes)], 'lora');
  const links = ['https://host/api/download/1?type=Model', 'https://host/api/download/2'];
  const pair = links.map((name) => ({ name, file, scale: 1 }));
  await expect((await openTwin('tiny-wan22-a14b')).withLoras(pair)).rejects.toMatchObject({
    code: 'LORA_INVALID',
    message: expect.stringMatching(/^Nothing tells which of the LoRAs .* low noise/),
    remedy: expect.stringContaining('in their names'),
  });
  const named = pair.map((one, i) => ({ ...one, name: `style-${'ab'[i]}.safetensors` }));
  for (const loras of [named, pair.slice(1)]) {
    const model = await (await openTwin('tiny-wan22-a14b')).withLoras(loras);
    expect([...model.loras.values()].map(({ branches }) => branches.size)).toEqual([10, 10]);
  }
});

test('a pair gives each expert its file, and a model with one transformer refuses it', async () => {
  const bytes = await readFile(`${goldens}tiny-wan22-a14b/loras/a_comfy.safetensors`);
  const file = new File([new Uint8Array(bytes)], 'lora');
  const pair = ['x_high', 'x_low'].map((name, i) => ({ name, file, scale: i + 1 }));
  const { loras } = await (await openTwin('tiny-wan22-a14b')).withLoras(pair);
  const of = (expert: 'transformer' | 'transformer_2') =>
    loras.get(expert)?.branches.get('blocks.0.attn1.to_q')?.up[0] ?? 0;
  expect(of('transformer_2')).toBeCloseTo(2 * of('transformer'), 6);
  expect(of('transformer')).not.toBe(0);
  await expect((await openTwin('tiny-wan21-i2v')).withLoras(pair)).rejects.toMatchObject({
    code: 'LORA_WRONG_BASE',
  });
});
