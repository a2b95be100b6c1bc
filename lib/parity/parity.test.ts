import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nodeBackend } from '../models/wan22/testing/model';
import {
  diskFolder,
  goldens,
  patchedFolder,
  publicModels,
  safetensorsFrom,
} from '../weights/testing/files';
import { compare, type ParityLine, runParity } from '.';

const folder = diskFolder(goldens);
const backend = nodeBackend();
afterAll(() => backend.dispose());

/** The goldens with only some tensors, each changed by `change`. */
async function tampered(
  keep: readonly string[],
  change: (name: string, data: Float32Array) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(await readFile(`${goldens}golden.safetensors`));
  const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header: Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }> =
    JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  let offset = 0;
  const data: Uint8Array<ArrayBuffer>[] = [];
  const kept: typeof header = {};
  for (const name of keep) {
    const entry = header[name];
    if (!entry) throw new Error(`the goldens have no ${name}`);
    const [start, end] = entry.data_offsets;
    const copy = bytes.slice(8 + length + start, 8 + length + end);
    if (entry.dtype === 'F32') change(name, new Float32Array(copy.buffer));
    kept[name] = { ...entry, data_offsets: [offset, offset + copy.length] };
    offset += copy.length;
    data.push(copy);
  }
  return safetensorsFrom(kept, data);
}

async function parityOf(
  keep: readonly string[],
  change: (name: string, data: Float32Array) => void = () => undefined,
) {
  const patched = patchedFolder(folder, {
    'golden.safetensors': await tampered(keep, change),
    // No LoRA, no tiny decoder and no key frames: they need other goldens than these.
    'keyframes.safetensors': null,
    'formats/tiny-decoder-base-golden.safetensors': null,
    'formats/tiny-decoder-super-golden.safetensors': null,
  });
  const lines = await runParity(patched, backend);
  return new Map(lines.map((line) => [line.stage, line]));
}

/** A folder of `lib`. */
const lib = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

describe('the goldens', () => {
  let lines: ParityLine[] = [];
  const live: ParityLine[] = [];
  beforeAll(async () => {
    lines = await runParity(folder, backend, {
      loraFiles: await readdir(`${goldens}loras`),
      onLine: (line) => live.push(line),
    });
  }, 120_000);

  test('every line is ok', () => {
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    expect(live).toEqual(lines);
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('every stage is there, once', () => {
    expect(lines).toHaveLength(58);
    expect(new Set(lines.map(({ stage }) => stage)).size).toBe(58);
  });

  test('the tolerances are those of the README, and f32 stays far below', () => {
    for (const { stage, tolerance, relativeRms } of lines) {
      const whole = /^latents|from prompt/.test(stage);
      const formats = stage.startsWith('video, Q8_0') ? 2e-3 : null;
      const wanted = formats ?? (stage.includes('8-bit') ? 5e-2 : whole ? 1e-3 : 1e-4);
      expect(tolerance, stage).toBeLessThanOrEqual(wanted);
      if (!stage.includes('8-bit')) expect(relativeRms, stage).toBeLessThanOrEqual(tolerance / 4);
    }
    // 8-bit weights were at work: f32 would be nearer.
    const quantised = lines.find(({ stage }) => stage.includes('8-bit'));
    expect(quantised?.relativeRms).toBeGreaterThan(1e-4);
  });
});

const finishing = ['features0', 'features1', 'middle'];
const flows = [0, 1, 2, 3, 4].map((i) => `flow_block${i}`);

describe('other networks: every stage is there and agrees', () => {
  test.each([
    [
      'models/wan14b/goldens/tiny-wan22-a14b',
      10,
      1e-5,
      ['latents, last image', 'latents, a_comfy 0.8'],
    ],
    ['models/wan14b/goldens/tiny-wan21-i2v', 11, 1e-5, ['image encoder, features']],
    ['finishing/goldens/tiny-realesr', 2, 1e-5, ['x4', 'x2']],
    ['finishing/goldens/tiny-rife', 8, 1e-5, [...finishing, ...flows]],
    ['safety/goldens', 53, 1e-5, ['tall.timm.center.hidden_2', 'small.transformers.hidden_2']],
    ['safety/goldens/nsfwjs', 24, 1e-5, ['0.out_relu', '4.pixels', '3.logits']],
  ] as const)('%s', { timeout: 120_000, tags: ['full'] }, async (path, count, bound, some) => {
    const loraFiles = await readdir(lib(`${path}/loras`)).catch(() => []);
    const quickChecker = diskFolder(`${publicModels}../nsfwjs`);
    const lines = await runParity(diskFolder(lib(path)), backend, { loraFiles, quickChecker });
    expect(lines.filter(({ ok }) => !ok)).toEqual([]);
    const names = lines.map(({ stage }) => stage);
    expect(names).toEqual(expect.arrayContaining([...some]));
    expect(new Set(names).size).toBe(count);
    for (const { stage, tolerance, maxAbsolute } of lines) {
      const wanted = stage.includes('8-bit') ? 5e-2 : bound;
      expect(tolerance, stage).toBeLessThanOrEqual(wanted);
      if (/cover\.pixels|transformers\.pixels|squares|label/.test(stage)) expect(tolerance).toBe(0);
      if (/^\d\.probabilities/.test(stage)) expect(maxAbsolute).toBeLessThan(2e-6);
    }
    expect(backend.counters().liveBytes).toBe(0);
  });
});

describe('the check can fail', () => {
  const transformer = [
    'dit_input',
    'dit_timestep_tokens',
    'dit_velocity',
    'dit_block_0',
    'dit_block_1',
    'prompt_embeds',
  ];

  test('one wrong block is that line, and no other', async () => {
    const lines = await parityOf(transformer, (name, data) => {
      if (name === 'dit_block_1') for (const i of data.keys()) data[i] = (data[i] ?? 0) * 1.001;
    });
    expect(lines.get('transformer block 0')?.ok).toBe(true);
    expect(lines.get('transformer block 1')).toMatchObject({ ok: false });
    expect(lines.get('transformer block 1')?.relativeRms).toBeCloseTo(1e-3, 4);
    expect(lines.get('transformer velocity')?.ok).toBe(true);
  });

  test('another bilinear or bicubic kernel is a FAIL', async () => {
    const classifier = diskFolder(lib('safety/goldens'));
    const config = (await classifier.json('timm/config.json')) as { pretrained_cfg: object };
    const other = { ...config.pretrained_cfg, interpolation: 'bilinear' };
    const patched = patchedFolder(classifier, {
      'timm/config.json': JSON.stringify({ ...config, pretrained_cfg: other }),
      'transformers/preprocessor_config.json': JSON.stringify({ resample: 3 }),
    });
    const lines = await runParity(patched, backend);
    const failed = lines.filter(({ ok }) => !ok).map(({ stage }) => stage);
    expect(failed).toEqual([
      'wide.timm.cover.pixels',
      'tall.timm.cover.pixels',
      'small.timm.cover.pixels',
      'wide.transformers.pixels',
      'tall.transformers.pixels',
      'small.transformers.pixels',
    ]);
  });

  test('a folder of no network is refused, and so is a family that there is not', async () => {
    for (const fields of [{}, { family: 'wan99', kind: 'a14b' }]) {
      const patched = patchedFolder(folder, { 'golden.json': JSON.stringify(fields) });
      await expect(runParity(patched, backend)).rejects.toMatchObject({
        code: 'MODEL_MANIFEST_INVALID',
      });
    }
  });

  test('a prompt with other ids is a FAIL', async () => {
    const json = (await folder.json('golden.json')) as { tokenizer_ids: number[][] };
    json.tokenizer_ids[1] = [...(json.tokenizer_ids[1] ?? []).slice(0, -1), 2];
    const patched = patchedFolder(folder, {
      'golden.json': JSON.stringify(json),
      'golden.safetensors': await tampered(['prompt_embeds'], () => undefined),
    });
    const lines = (await runParity(patched, backend)).filter(({ stage }) =>
      stage.startsWith('token ids'),
    );
    expect(lines.filter(({ ok }) => !ok).map(({ stage }) => stage.slice(0, 19))).toEqual([
      'token ids, prompt 1',
    ]);
  });

  test('a stage that throws is a FAIL that says why, and the next ones still run', async () => {
    const patched = patchedFolder(folder, {
      'golden.safetensors': await tampered(
        ['prompt_embeds', 'sched_velocities', 'sched_latents', 'noise'],
        () => undefined,
      ),
      'text_encoder/model.safetensors': null,
      'model/text_encoder/model.safetensors': null,
    });
    const lines = await runParity(patched, backend);
    expect(lines.find(({ stage }) => stage === 'text')).toMatchObject({
      ok: false,
      note: expect.stringContaining('text_encoder'),
    });
    expect(lines.find(({ stage }) => stage === 'scheduler latents')?.ok).toBe(true);
  });

  test('what a folder lacks is computed or is a FAIL, never left out in silence', async () => {
    const lines = await parityOf([
      'dit_input',
      'dit_block_1',
      'sigmas',
      'dit_velocity_lora_a08_b17',
    ]);
    expect(lines.get('transformer block 1')?.ok).toBe(true);
    expect(lines.get('scheduler sigmas')?.ok).toBe(true);
    expect(lines.has('transformer velocity')).toBe(false);
    expect(lines.get('dit_velocity_lora_a08_b17')).toMatchObject({
      ok: false,
      note: 'no file in loras/ fits its name',
    });
  });

  test('another tolerance is used', async () => {
    const lines = await runParity(
      patchedFolder(folder, {
        'golden.safetensors': await tampered(transformer, () => undefined),
      }),
      backend,
      { tolerance: 1e-12 },
    );
    expect(lines.find(({ stage }) => stage === 'transformer velocity')).toMatchObject({
      tolerance: 1e-12,
      ok: false,
    });
  });
});

describe('compare', () => {
  test('is ‖a − b‖ / ‖b‖ and the largest difference', () => {
    expect(compare('x', [3, 4.5], [3, 4], 0.1)).toMatchObject({
      relativeRms: 0.1,
      maxAbsolute: 0.5,
      ok: true,
    });
    expect(compare('x', [3, 4.5], [3, 4], 0.09).ok).toBe(false);
  });

  test.each([
    ['NaN in the result', [Number.NaN, 1], [1, 1]],
    ['NaN in the reference', [1, 1], [1, Number.NaN]],
    ['infinity', [Number.POSITIVE_INFINITY, 1], [1, 1]],
    ['both infinite', [Number.POSITIVE_INFINITY], [Number.POSITIVE_INFINITY]],
    ['another length', [1], [1, 1]],
    ['nothing at all', [], []],
  ])('%s never passes', (_, actual, expected) => {
    expect(compare('x', actual, expected, Number.MAX_VALUE).ok).toBe(false);
  });
});
