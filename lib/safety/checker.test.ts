import { createHash } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { nodeBackend } from '../models/wan/testing/model';
import {
  cutSquares,
  layOutSquares,
  type RgbaImage,
  rgbaBytes,
  triangle,
} from '../pipeline/vision/squares';
import { blobFile, openTensorFile } from '../weights';
import { patchedFolder, safetensorsFrom } from '../weights/testing/files';
import { checkCheckerFiles } from './checker';
import { parseCheckerConfig } from './checker-config';
import {
  golden,
  goldenCheckerFolder,
  goldenFolder,
  goldenImage,
  openGoldenChecker,
} from './testing/golden';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const { signal } = new AbortController();

const timm = JSON.parse(await goldenCheckerFolder.text('config.json'));
const transformers = JSON.parse(await goldenFolder.text('transformers/config.json'));
const withLabels = (label_names: unknown) => ({
  ...timm,
  pretrained_cfg: { ...timm.pretrained_cfg, label_names },
});

describe('squares', () => {
  test.each([
    [
      'wide',
      [1280, 704],
      [698, 384],
      [
        [0, 0],
        [314, 0],
      ],
    ],
    [
      'tall',
      [704, 1280],
      [384, 698],
      [
        [0, 0],
        [0, 314],
      ],
    ],
    ['square', [900, 900], [384, 384], [[0, 0]]],
    [
      '3:1',
      [600, 200],
      [1152, 384],
      [
        [0, 0],
        [384, 0],
        [768, 0],
      ],
    ],
    [
      'a little wider than a square',
      [385, 384],
      [385, 384],
      [
        [0, 0],
        [1, 0],
      ],
    ],
    ['a single pixel', [1, 1], [384, 384], [[0, 0]]],
  ])('%s', (_, [width = 0, height = 0], resized, offsets) => {
    expect(layOutSquares({ width, height }, { size: 384, fit: 'cover' })).toEqual({
      width: resized[0],
      height: resized[1],
      offsets,
    });
  });

  test('a line of pixels has 16 squares from end to end', () => {
    const { width, offsets } = layOutSquares(
      { width: 20_000, height: 1 },
      { size: 384, fit: 'cover' },
    );
    expect(offsets.length).toBe(16);
    expect([offsets[0], offsets[15]]).toEqual([
      [0, 0],
      [width - 384, 0],
    ]);
  });

  test('of a flat image are flat, whatever its shape', () => {
    const { preprocessing } = parseCheckerConfig(timm);
    for (const [width, height] of [
      [1, 1],
      [7, 1],
      [300, 100],
      [1, 50],
    ] as const) {
      const data = new Uint8ClampedArray(4 * width * height).fill(77);
      for (const kernel of [preprocessing.kernel, triangle]) {
        const image = rgbaBytes({ data, width, height });
        const { values: bytes, count } = cutSquares(image, { ...preprocessing, kernel });
        expect(bytes.length).toBe(count * 3 * 64 * 64);
        expect(bytes.every((byte) => byte === 77)).toBe(true);
      }
    }
  });
});

/** The pictures of `goldens/pil.json`. */
function noise(width: number, height: number): RgbaImage {
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  let state = width * 65_536 + height;
  for (let i = 0; i < 3 * width * height; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    data[4 * Math.floor(i / 3) + (i % 3)] = state >>> 24;
  }
  return { data, width, height };
}

test('squares are those of PIL to the last bit, whatever the size of the picture', async () => {
  const { preprocessing } = parseCheckerConfig(timm);
  const kernels = { bicubic: preprocessing.kernel, bilinear: triangle };
  const references = pilSchema.parse(await goldenFolder.json('pil.json'));
  expect(references.length).toBeGreaterThan(30);
  const found = references.map(({ width, height, size, fit, kernel }) => {
    const wanted = { ...preprocessing, size, fit, kernel: kernels[kernel] };
    const { values } = cutSquares(rgbaBytes(noise(width, height)), wanted);
    const sha256 = createHash('sha256').update(values).digest('hex');
    return { width, height, size, fit, kernel, sha256 };
  });
  expect(found).toEqual(references);
});

const pilSchema = z.array(
  z.object({
    width: z.int(),
    height: z.int(),
    size: z.int(),
    fit: z.enum(['cover', 'stretch']),
    kernel: z.enum(['bicubic', 'bilinear']),
    sha256: z.string(),
  }),
);

describe('scores', () => {
  const images = ['wide', 'tall', 'small'] as const;

  test('are those of the reference, for several images at once', async () => {
    const checker = await openGoldenChecker();
    const squares = (await Promise.all(images.map(goldenImage))).map(checker.squares);
    const progress: number[] = [];
    const scores = await checker.score(backend, squares, signal, (done) => progress.push(done));
    for (const [i, name] of images.entries()) {
      expect(scores[i]).toBeCloseTo(golden.images[name]?.score ?? Number.NaN, 5);
    }
    expect(progress).toEqual([0, 1, 2, 3, 4, 5]);
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('of swapped labels are the others', async () => {
    const folder = patchedFolder(goldenCheckerFolder, {
      'config.json': JSON.stringify(withLabels(['sfw', 'nsfw'])),
    });
    const checker = await openGoldenChecker(folder);
    const [score] = await checker.score(
      backend,
      [checker.squares(await goldenImage('small'))],
      signal,
    );
    expect(score).toBeCloseTo(1 - (golden.images.small?.score ?? Number.NaN), 5);
  });

  test('of a frame are those of the same image', async () => {
    const checker = await openGoldenChecker();
    const image = await goldenImage('wide');
    expect(checker.squaresOfFrame(frameOf(image))).toEqual(checker.squares(image));
  });

  test('read the weights once, whatever the number of images', async () => {
    const checker = await openGoldenChecker();
    const allocationsFor = async (count: number) => {
      const before = backend.counters().allocations;
      const squares = new Array(count).fill(checker.squares(await goldenImage('wide')));
      await checker.score(backend, squares, signal);
      return backend.counters().allocations - before;
    };
    expect(await allocationsFor(6)).toBe(await allocationsFor(2));
  });

  test('end with the signal and leave nothing behind', async () => {
    const abort = new AbortController();
    const checker = await openGoldenChecker();
    const squares = new Array(6).fill(checker.squares(await goldenImage('wide')));
    const stopped = checker.score(backend, squares, abort.signal, (done) => {
      if (done > 0) abort.abort(new Error('enough'));
    });
    await expect(stopped).rejects.toThrow('enough');
    expect(backend.counters().liveBytes).toBe(0);
  });
});

describe('a checker that cannot be used is refused', () => {
  test.each<[string, unknown, string]>([
    ['unknown labels', withLabels(['bad', 'good']), '"bad", "good"'],
    ['one known label', withLabels(['NSFW', 'ugly']), '"NSFW", "ugly"'],
    ['the same label twice', withLabels(['NSFW', 'nsfw']), '"NSFW", "nsfw"'],
    ['three labels', withLabels(['NSFW', 'SFW', 'NORMAL']), '"NORMAL"'],
    ['no labels', withLabels(undefined), 'pretrained_cfg.label_names'],
    [
      'labels of transformers that are not counted',
      { ...transformers, id2label: { a: 'nsfw', b: 'sfw' } },
      'labels',
    ],
    ['another architecture', { ...timm, architecture: 'resnet50' }, 'architecture'],
    ['another model type', { ...transformers, model_type: 'clip' }, 'model_type'],
    ['another activation', { ...transformers, hidden_act: 'relu' }, 'hidden_act'],
    [
      'a part of the image',
      { ...timm, pretrained_cfg: { ...timm.pretrained_cfg, crop_pct: 0.9 } },
      'crop_pct',
    ],
    [
      'an oblong input',
      { ...timm, pretrained_cfg: { ...timm.pretrained_cfg, input_size: [3, 64, 32] } },
      'square',
    ],
    ['no object', 'vit', 'config.json'],
  ])('%s', (_, config, part) => {
    let thrown: unknown;
    try {
      parseCheckerConfig(config);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({
      code: 'MODEL_CONFIG_INVALID',
      message: expect.stringContaining(part),
      remedy: expect.stringContaining('nsfw-image-detection-384'),
    });
  });

  test('labels in any case and order are known', () => {
    expect(parseCheckerConfig(timm).unsafeIndex).toBe(0);
    expect(parseCheckerConfig(transformers).unsafeIndex).toBe(1);
    expect(parseCheckerConfig(withLabels(['Normal', 'Nsfw'])).unsafeIndex).toBe(1);
  });

  /** The golden file's header, changed. */
  async function fileWith(change: (header: Record<string, { shape: number[] }>) => void) {
    const file = await goldenCheckerFolder.open('model.safetensors');
    const bytes = new Uint8Array(await file.read(0, file.size));
    const length = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    change(header);
    const changed = safetensorsFrom(header, [bytes.slice(8 + length)]);
    return openTensorFile(blobFile('model.safetensors', new Blob([changed])));
  }

  test('its tensors are checked against its configuration', async () => {
    const whole = await fileWith(() => undefined);
    expect(() => checkCheckerFiles(timm, whole)).not.toThrow();
    const large = {
      ...timm,
      pretrained_cfg: { ...timm.pretrained_cfg, input_size: [3, 384, 384] },
    };
    const cases: [unknown, typeof whole, string, string][] = [
      [large, whole, 'TENSOR_SHAPE', 'pos_embed'],
      [{ ...timm, model_args: { num_heads: 5 } }, whole, 'MODEL_CONFIG_INVALID', '5 heads'],
      [transformers, whole, 'TENSOR_MISSING', 'vit.embeddings'],
      [timm, await renamed('blocks.1.mlp.fc2.bias'), 'TENSOR_MISSING', 'blocks.1.mlp.fc2.bias'],
    ];
    for (const [config, file, code, part] of cases) {
      const check = () => checkCheckerFiles(config, file);
      expect(check).toThrow(
        expect.objectContaining({ code, message: expect.stringContaining(part) }),
      );
    }
  });

  const renamed = (name: string) =>
    fileWith((header) => {
      const entry = header[name];
      if (!entry) throw new Error(`the golden has no ${name}`);
      delete header[name];
      header.other = entry;
    });
});

/** An image as the decoder would give it: planar RGB in −1…1. */
function frameOf({ data, width, height }: RgbaImage) {
  const plane = width * height;
  const values = new Float32Array(3 * plane);
  for (let i = 0; i < plane; i++) {
    for (let c = 0; c < 3; c++) values[c * plane + i] = (data[4 * i + c] ?? 0) / 127.5 - 1;
  }
  return { data: values, width, height };
}
