import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  describeIssues,
  frameAt,
  frameCount,
  isErrorCode,
  KinoraError,
  maxSeed,
  nativeSizeOf,
  type Parameters,
  parseManifest,
  parseParameters,
  requirePlaceOfLastImage,
  resolveSeed,
  sizeInPixels,
  toKinoraError,
} from '.';
import { testManifest } from './testing/manifest';

describe('parameters', () => {
  test('a prompt is enough; the other parameters have their documented defaults', () => {
    expect(parseParameters({ prompt: 'waves' })).toEqual({
      prompt: 'waves',
      negative_prompt: '',
      loras: [],
      size: '1280*720',
      num_inference_steps: 30,
      duration: 5,
      guidance_scale: 5,
      flow_shift: 5,
      seed: -1,
    });
  });

  test.each([
    [{ num_inference_steps: 0 }, 'num_inference_steps must be a whole number from 1 to 40.'],
    [{ num_inference_steps: 2.5 }, 'num_inference_steps must be a whole number from 1 to 40.'],
    [{ duration: 11 }, 'duration must be a whole number from 5 to 10.'],
    [{ guidance_scale: 0.9 }, 'guidance_scale must be a number from 1 to 10.'],
    [{ flow_shift: Number.NaN }, 'flow_shift must be a number from 1 to 10.'],
    [{ last_image_at: 0 }, 'last_image_at must be at least 0.1.'],
    [{ last_image_at: 11 }, 'last_image_at must be at most 10.'],
    [{ seed: 10_000_000_000 }, 'seed must be a whole number from -1 to 9999999999.'],
    [{ size: '640*480' }, 'size must be one of 1280*720, 720*1280.'],
    [{ loras: Array(4).fill({ path: 'a', scale: 1 }) }, 'loras takes at most 3 adapters.'],
    [{ prompt: 'x'.repeat(10_001) }, 'prompt must have at most 10000 characters.'],
    [{ loras: [{ path: 'a', scale: 4.1 }] }, 'loras.0.scale must be a number from 0 to 4.'],
  ])('%o is rejected with its range', (field, message) => {
    const parse = () => parseParameters({ prompt: 'waves', ...field });
    expect(parse).toThrow(expect.objectContaining({ code: 'PARAMETER_INVALID', message }));
  });

  test('each transformer takes three adapters, whose noise may be named', () => {
    const three = (noise?: 'high' | 'low') =>
      ['a', 'b', 'c'].map((path) => ({ path, ...(noise && { noise }) }));
    const count = (loras: object[]) => parseParameters({ prompt: 'waves', loras }).loras.length;
    expect(count([...three('high'), ...three('low')])).toBe(6);
    expect(() => count([...three('high'), { path: 'd' }])).toThrow('at most 3');
  });

  test.each(['', '   ', '\n\t', undefined])('the prompt %j is empty', (prompt) => {
    expect(() => parseParameters({ prompt })).toThrow(
      expect.objectContaining({ code: 'PROMPT_EMPTY' }),
    );
  });

  test('the limits of a range are valid', () => {
    for (const edge of [1, 10]) {
      expect(parseParameters({ prompt: 'p', guidance_scale: edge }).guidance_scale).toBe(edge);
    }
    expect(parseParameters({ prompt: 'p', seed: maxSeed }).seed).toBe(maxSeed);
  });
});

test('sizes in pixels and durations in frames', () => {
  expect(sizeInPixels('720*1280')).toEqual({ width: 720, height: 1280 });
  expect([5, 6, 7, 8, 9, 10].map((d) => frameCount(testManifest(), d))).toEqual([
    121, 145, 169, 193, 217, 241,
  ]);
  const slower = { framesPerSecond: 15, frameStride: 8 };
  expect([5, 6, 7].map((seconds) => frameCount(slower, seconds))).toEqual([73, 89, 105]);
});

test('a second of a video is its nearest frame, never the first', () => {
  const rule = { framesPerSecond: 24, frameStride: 4 };
  expect([0.1, 2.5, 4.99, 5].map((second) => frameAt(rule, 5, second))).toEqual([2, 60, 120, 120]);
  expect(frameAt({ framesPerSecond: 4, frameStride: 4 }, 5, 0.1)).toBe(1);
});

describe('the place of an end image', () => {
  const place = (parameters: Partial<Parameters>, image: string | null = 'a picture') =>
    requirePlaceOfLastImage({ duration: 5, ...parameters }, image ?? undefined);

  test('is the end, or a second before it, also of a loop', () => {
    for (const fits of [{}, { last_image_at: 5 }, { loop: true, last_image_at: 4.9 }]) {
      expect(() => place(fits)).not.toThrow();
    }
    expect(() => place({ loop: true }, null)).not.toThrow();
  });

  test.each([
    [{ loop: true }, 'LOOP_WITH_LAST_IMAGE', 'A loop ends in its start image'],
    [{ loop: true, last_image_at: 5 }, 'LOOP_WITH_LAST_IMAGE', 'A loop ends in its start image'],
    [
      { last_image_at: 5.1 },
      'LAST_IMAGE_BEYOND_END',
      'The end image stands at second 5.1, and the video has 5 seconds.',
    ],
  ] as const)('%o is refused', (parameters, code, message) => {
    const error = expect.objectContaining({ code, message: expect.stringContaining(message) });
    expect(() => place(parameters)).toThrow(error);
  });

  test('needs an end image', () => {
    const error = expect.objectContaining({ code: 'PARAMETER_INVALID' });
    expect(() => place({ last_image_at: 2 }, null)).toThrow(error);
  });
});

test('−1 is replaced by a random seed in the range, any other seed is kept', () => {
  expect(resolveSeed(0)).toBe(0);
  expect(resolveSeed(maxSeed)).toBe(maxSeed);
  const drawn = new Set(Array.from({ length: 200 }, () => resolveSeed(-1)));
  expect(drawn.size).toBe(200);
  for (const seed of drawn) {
    expect(Number.isInteger(seed)).toBe(true);
    expect(seed).toBeGreaterThanOrEqual(0);
    expect(seed).toBeLessThanOrEqual(maxSeed);
  }
});

test.each([
  [{ size: 0 }, 'size must be more than 0.'],
  [{ size: -1 }, 'size must be more than 0.'],
  [{ size: 1.5 }, 'size must be a whole number.'],
  [{ size: '5' }, 'size must be a number.'],
  [{ size: 2 ** 53 }, 'size must be at most 9007199254740991.'],
  [{ share: 1 }, 'share must be less than 1.'],
  [{ share: 0.6 }, 'share must be at most 0.5.'],
])('%o is rejected with the range of its schema', (input, message) => {
  const schema = z.object({
    size: z.int().positive().optional(),
    share: z.number().lt(1).max(0.5).optional(),
  });
  const { error } = schema.safeParse(input);
  expect(error && describeIssues(error)).toMatchObject([{ message }]);
});

describe('manifests', () => {
  const read = async (id: string) =>
    JSON.parse(await readFile(new URL(`../../public/models/${id}.json`, import.meta.url), 'utf8'));

  test.each([
    'tiny',
    'wan2.2-ti2v-5b',
    'wan2.2-i2v-a14b',
    'wan2.1-i2v-14b-480p',
    'wan2.1-i2v-14b-720p',
  ])('%s is valid', async (id) => {
    const { id: found, defaults } = parseManifest(await read(id));
    expect(found).toBe(id);
    expect(defaults.negative_prompt).toMatch(/^(镜头晃动，)?色调艳丽，.*倒着走$/);
  });

  test('a profile may compute at sizes of its own', async () => {
    const manifest = parseManifest(await read('wan2.2-i2v-a14b'));
    const { profiles } = manifest;
    expect(nativeSizeOf(manifest, profiles.standard, '720*1280')).toMatchObject({ width: 720 });
    expect(nativeSizeOf(manifest, profiles['ultra-fast'], '720*1280')).toEqual({
      width: 480,
      height: 832,
    });
  });

  test('the demonstration model was trained without a negative prompt', async () => {
    expect(parseManifest(await read('mini')).defaults.negative_prompt).toBeUndefined();
  });

  test.each([
    ['id', 'Not An Id'],
    ['maxClipFrames', 120],
    ['framesPerSecond', undefined],
    ['framesPerSecond', 61],
    ['frameStride', undefined],
    ['family', undefined],
    ['sources', [{ component: 'low_noise', files: [{ repository: 'a/b', path: 'c' }] }]],
    ['nativeSizes', { '1280*720': { width: 160, height: 90 } }],
    ['precision', 'int3'],
    ['defaults', { negative_prompt: 'a'.repeat(10_001) }],
  ])('a wrong %s is named', async (field, value) => {
    const manifest = { ...(await read('tiny')), [field]: value };
    expect(() => parseManifest(manifest)).toThrow(
      expect.objectContaining({
        code: 'MODEL_MANIFEST_INVALID',
        message: expect.stringContaining(field),
      }),
    );
  });
});

describe('errors', () => {
  test('survive serialisation as a record', () => {
    const error = new KinoraError('TENSOR_SHAPE', 'proj_out is [1], expected [2].');
    const back = KinoraError.fromRecord(JSON.parse(JSON.stringify(error.toRecord())));
    expect(back).toMatchObject({ code: 'TENSOR_SHAPE', message: error.message });
    expect(back.remedy).toBe(error.remedy);
    expect(new KinoraError('TENSOR_SHAPE', 'Its shape.', { remedy: '' }).remedy).toBe(error.remedy);
  });

  test('other errors get a code', () => {
    expect(toKinoraError(new DOMException('x', 'QuotaExceededError')).code).toBe('STORAGE_FULL');
    expect(toKinoraError(new DOMException('x', 'AbortError')).code).toBe('CANCELLED');
    // Browsers throw it for workers, pickers and more, not only where site data is blocked.
    const insecure = new DOMException('The operation is insecure.', 'SecurityError');
    expect(toKinoraError(insecure).code).toBe('INTERNAL');
    for (const message of [
      'Failed to fetch',
      'Load failed',
      'NetworkError when attempting to fetch resource.',
    ]) {
      expect(toKinoraError(new TypeError(message)).code).toBe('SERVER_UNREACHABLE');
    }
    expect(toKinoraError('boom')).toMatchObject({
      code: 'INTERNAL',
      message: 'Something went wrong inside Kinora: boom',
    });
    expect(isErrorCode('DEVICE_LOST') && !isErrorCode('toString')).toBe(true);
  });
});
