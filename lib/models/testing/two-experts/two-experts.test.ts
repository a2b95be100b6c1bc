import { afterAll, beforeAll, expect, test } from 'vitest';
import { at, type LoraFile } from '../../../contract';
import { Scope } from '../../../gpu';
import { libraryTests, modelOf } from '../../../library/testing/library';
import type { NamedTensors, VideoModel } from '../../../pipeline/model';
import { blobFile, openSafetensors } from '../../../weights';
import { modelFamilies } from '../..';
import { nodeBackend, tinyFolder } from '../../wan/testing/model';
import { image, memoryStorage, shortRun } from '../short-run';
import { twoExpertsFamily } from './family';
import { repository, twoExpertsFiles, twoExpertsLora, twoExpertsManifest } from './files';

const now = libraryTests();
const backend = nodeBackend();
const { id } = twoExpertsManifest;
let files: Map<string, Uint8Array<ArrayBuffer>>;
beforeAll(async () => {
  files = await twoExpertsFiles(tinyFolder);
});
afterAll(() => backend.dispose());

/** A tab that knows the family, and the model on the hub. */
function openTab(changes: Readonly<Record<string, string>> = {}) {
  for (const [path, content] of [...files, ...Object.entries(changes)]) {
    now().hub.repositories.put(repository, path, content);
  }
  return now().openTab({ families: { ...modelFamilies, [id]: twoExpertsFamily } });
}

const loraFile = () => new File([twoExpertsLora()], 'expert.safetensors');

test('a model of another family is downloaded, checked, stored, run, resumed and takes a LoRA', {
  tags: ['full'],
}, async () => {
  const library = openTab();
  const added = await library.addModel({ address: repository });
  expect(added.manifest).toMatchObject({ family: id, framesPerSecond: 16, frameStride: 8 });
  await library.download(id, 'int8');
  const entry = await modelOf(library, id);
  expect(entry.ready).toBe(true);
  const all = ['configuration', 'text_encoder', 'high_noise', 'low_noise', 'image_encoder'];
  const stored = new Set(entry.stored.map(({ component }) => component));
  expect(stored).toEqual(new Set([...all, 'safety_checker']));
  // Another precision asks for what has linear layers anew; the image encoder is the same in each.
  const { parts } = await library.planDownload(id, 'f32');
  const left = parts.filter(({ bytesLeft }) => bytesLeft > 0).map(({ component }) => component);
  expect(left).toEqual(['text_encoder', 'high_noise', 'low_noise']);
  const lora = await library.addLora({ file: loraFile() });
  expect(lora).toMatchObject({ base: 'Two experts', rank: 2 });

  const model = await twoExpertsFamily.openInstalled(added.manifest, now().folder(id));
  const whole = await shortRun(backend, model, 17, memoryStorage());
  expect(whole.frames).toHaveLength(17);
  const storage = memoryStorage();
  await expect(shortRun(backend, model, 17, storage, { pauseAt: 2 })).rejects.toMatchObject({
    code: 'PAUSED',
  });
  const resumed = await shortRun(backend, model, 17, storage, { resumes: true });
  expect(resumed.steps).toEqual([3, 4]);
  expect(resumed.frames).toEqual(whole.frames);
  const file: LoraFile = { name: 'expert.safetensors', file: loraFile(), scale: 1 };
  const adapted = await model.withLoras([file]);
  expect(adapted.fingerprint).not.toBe(model.fingerprint);
  const other = await shortRun(backend, adapted, 17, memoryStorage());
  expect(other.frames).toHaveLength(17);
  expect(other.frames).not.toEqual(whole.frames);
  expect(backend.counters().liveBytes).toBe(0);
});

test('weights that do not fit its configuration are refused when it is added', async () => {
  const wider = JSON.stringify({ channels: 4, hidden: 64, boundary: 875 });
  await expect(
    openTab({ 'sizes.json': wider }).addModel({ address: repository }),
  ).rejects.toMatchObject({
    code: 'TENSOR_SHAPE',
    message:
      'high_noise.latents.weight of the high noise is [32,4], but its configuration needs [64,4].',
  });
});

test('a sampler that this version does not have is refused when the model is added', async () => {
  const profiles = { standard: { scheduler: { kind: 'dpm' } } };
  const manifest = JSON.stringify({ ...twoExpertsManifest, profiles });
  const adding = openTab({ 'kinora.json': manifest }).addModel({ address: repository });
  await expect(adding).rejects.toMatchObject({
    code: 'MODEL_MANIFEST_INVALID',
    message: expect.stringContaining('the sampler "dpm"'),
  });
});

test('the experts take turns by timestep, each with its LoRA beside its weights', async () => {
  const folder = {
    ...tinyFolder,
    open: async (path: string) => fileOf(path),
    json: async (path: string) => JSON.parse(new TextDecoder().decode(files.get(path))),
  };
  const plain = await twoExpertsFamily.open({ ...twoExpertsManifest, precision: 'f32' }, folder);
  const adapted = await plain.withLoras([{ name: 'l', file: loraFile(), scale: 0.5 }]);
  const size = { frames: 3, height: 1, width: 2 };
  const rows = 6;
  const texts = [Float32Array.from({ length: 2 * 64 }, (_, i) => Math.cos(i))];
  const { signal } = new AbortController();
  const conditions = await plain.encodeImages(backend, [{ frame: 0, image }], 17, signal);
  expect(at([...(conditions.mask ?? [])], 2)).toBe(0);
  const x = Float32Array.from({ length: rows * 4 }, (_, i) => Math.sin(3 * i));
  const velocityOf = async (model: VideoModel, timestep: number) => {
    const planner = await model.planMemory({ native: { ...image, frames: 17 } });
    const loading = { signal, onBytes: () => undefined };
    const denoiser = await model.loadDenoiser(backend, planner.full, loading, timestep);
    const scope = new Scope(backend);
    const clip = await denoiser.prepare({ size, image: conditions, texts });
    const [sample, velocity] = [
      scope.float32([rows, 4], 'latents', x),
      scope.float32([rows, 4], 'latents'),
    ];
    await clip.velocity(timestep, sample, [velocity]);
    const values = await backend.read(velocity);
    for (const each of [clip, denoiser, scope]) each.dispose();
    return values;
  };
  for (const [timestep, expert] of [
    [875, 'high_noise'],
    [874, 'low_noise'],
  ] as const) {
    const expected = await reference(expert, timestep, x, conditions, at(texts, 0));
    const actual = await velocityOf(plain, timestep);
    for (const [i, value] of actual.entries()) expect(value).toBeCloseTo(at(expected, i), 4);
    const changed = (await velocityOf(adapted, timestep)).some((value, i) => value !== actual[i]);
    expect(changed).toBe(expert === 'high_noise');
  }
  expect(backend.counters().liveBytes).toBe(0);
});

function fileOf(path: string) {
  const content = files.get(path);
  if (!content) throw new TypeError(`there is no file ${path}`);
  return blobFile(path, new Blob([content]));
}

/** An expert in double precision, as plainly as it can be written. */
async function reference(
  expert: string,
  timestep: number,
  x: Float32Array,
  { image: rows, mask }: NamedTensors,
  text: Float32Array,
): Promise<number[]> {
  const weights = await openSafetensors(fileOf(`${expert}.safetensors`));
  const linear = async (name: string, input: readonly number[]) => {
    const weight = await weights.read(`${expert}.${name}.weight`);
    const bias = await weights.read(`${expert}.${name}.bias`);
    return [...bias].map((b, o) =>
      input.reduce((sum, value, i) => sum + value * at(weight, o * input.length + i), b),
    );
  };
  const mean = Array.from({ length: 64 }, (_, i) => (at(text, i) + at(text, 64 + i)) / 2);
  const t = await linear('text', mean);
  const out: number[] = [];
  for (let row = 0; row < 6; row++) {
    const own = (values: Float32Array | undefined) =>
      [...(values ?? [])].slice(4 * row, 4 * row + 4);
    const a = await linear('latents', own(x));
    const c = await linear('condition', [...own(rows), at(mask ?? [], row), timestep / 1000]);
    const hidden = a.map((value, i) => gelu(value + at(c, i) + at(t, i)));
    out.push(...(await linear('output', hidden)));
  }
  return out;
}

/** Its tanh form. */
function gelu(x: number): number {
  return (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}
