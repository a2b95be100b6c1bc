import { describe, expect, test } from 'vitest';
import { type Compute, CountingBackend, relativeRms } from '../../gpu';
import { withAliases } from '../../weights';
import { openCheckpoint } from '../../weights/testing/checkpoint';
import { openGolden } from '../../weights/testing/files';
import { readModelConfig } from '../wan/model-config';
import { planWan, usualChoice } from '../wan/model-memory';
import { nodeBackend, realFolder, tinyFolder } from '../wan/testing/model';
import { countTextEncoder, encodePrompts, relativeBuckets } from './text-encoder';
import { textEncoderAliases } from './text-encoder-config';
import { loadTokenizer } from './tokenizer';

describe('relative buckets of UMT5-XXL', async () => {
  const { text_encoder: config } = await readModelConfig(realFolder);
  const length = 200;
  const buckets = relativeBuckets(config, length);
  /** Bucket of a key `ahead` places ahead of its query. */
  const bucket = (ahead: number) => {
    const query = ahead < 0 ? -ahead : 0;
    return buckets[query * length + query + ahead];
  };

  test.each([
    [0, 0],
    [-1, 1],
    [-7, 7],
    [-8, 8],
    [-11, 8], // ln(11/8)/ln 16 · 8 = 0.92
    [-12, 9], // 1.17
    [-16, 10], // 2 exactly
    [-32, 12],
    [-64, 14],
    [-127, 15],
    [-128, 15],
    [-199, 15],
    [1, 17],
    [7, 23],
    [8, 24],
    [12, 25],
    [199, 31],
  ])('a key at %i is in bucket %i', (ahead, expected) => {
    expect(bucket(ahead)).toBe(expected);
  });

  test('an odd half is halved downwards, as the reference does', () => {
    const odd = { ...config, relative_attention_num_buckets: 10 }; // 5 per direction, 2 exact
    const far = [...relativeBuckets(odd, 200).subarray(0, 200)];
    expect(far.slice(0, 3)).toEqual([0, 6, 7]);
    // ln(8/2)/ln(64)·3 = 1 exactly: bucket 3 begins at distance 8, bucket 4 at 32.
    expect([7, 8, 9, 31, 33, 199].map((at) => far[at])).toEqual([7, 8, 8, 8, 9, 9]);
  });

  test('depend on the distance only', () => {
    for (const [query, key] of [
      [150, 120],
      [40, 90],
      [199, 199],
    ] as const) {
      expect(buckets[query * length + key]).toBe(bucket(key - query));
    }
  });
});

describe('on a device with bindings of 128 MiB', () => {
  const kernels = usualChoice('exact');
  function device() {
    const { compute } = new CountingBackend();
    return { ...compute, limits: { ...compute.limits, bindingBytes: 2 ** 27 } };
  }

  test('weights of UMT5-XXL that a binding cannot hold are refused with the plan', async () => {
    const { text_encoder: config } = await readModelConfig(realFolder);
    // The inner layers have 160 MiB in f32.
    await expect(countTextEncoder(config, 'f32', [12], kernels, device())).rejects.toMatchObject({
      code: 'KERNELS_UNAVAILABLE',
      message: expect.stringMatching(
        /: text-encoder-layer: linear f32 .* a binding at most 134217728/,
      ),
    });
    const { largest } = await countTextEncoder(config, 'int8', [12], kernels, device());
    expect(largest).toBeLessThan(2 ** 27);
  });

  test('the plan of a clip compiles its kernels, too', async () => {
    const compile: Compute['compile'] = async (all) => {
      const added = all.filter(({ bindings }) => bindings.some(({ name }) => name === 'bias'));
      const ofText = added.filter(({ name }) => name.startsWith('attention'));
      return ofText.map((kernel) => ({ kernel, reason: 'no' }));
    };
    const native = { width: 64, height: 32, frames: 9 };
    const compute = { ...device(), compile };
    const config = await readModelConfig(tinyFolder);
    const planned = planWan(config, 'int8', { native, kernels, compute });
    await expect(planned).rejects.toMatchObject({
      code: 'KERNELS_UNAVAILABLE',
      message: expect.stringMatching(/: text-encoder-layer: attention .* fails: no\.$/),
    });
  });
});

describe('encodePrompts', async () => {
  const { text_encoder: config } = await readModelConfig(tinyFolder);
  const file = await openCheckpoint(tinyFolder, 'text_encoder');
  const checkpoint = withAliases(file, textEncoderAliases);
  const golden = await openGolden('golden.safetensors');
  const settings = (await import('../wan/goldens/tiny-wan22-ti2v/golden.json')).default;
  const { encodePrompt } = await loadTokenizer(tinyFolder);
  const ids = [settings.prompt, settings.negative_prompt].map(encodePrompt);

  test.each([
    ['f32', 1e-5],
    ['int8', 3e-2],
    ['int4', 3e-2],
  ] as const)('each prompt at its own length, %s', async (precision, tolerance) => {
    const backend = nodeBackend();
    const embeds = await encodePrompts(backend, checkpoint, config, ids, { precision });
    for (const [i, name] of ['prompt_embeds', 'negative_prompt_embeds'].entries()) {
      const expected = (await golden.read(name)).slice(0, (ids[i]?.length ?? 0) * config.d_model);
      expect(relativeRms(embeds[i] ?? [], expected)).toBeLessThan(tolerance);
    }
    expect(backend.counters().liveBytes).toBe(0);
    await backend.dispose();
  });

  test('a token outside the vocabulary is refused in a sentence', async () => {
    const backend = nodeBackend();
    const foreign = [[1, config.vocab_size]];
    const run = encodePrompts(backend, checkpoint, config, foreign, { precision: 'f32' });
    await expect(run).rejects.toMatchObject({
      code: 'MODEL_CONFIG_INVALID',
      message: expect.stringContaining(`vocab_size of the text encoder is ${config.vocab_size}`),
    });
    expect(backend.counters().liveBytes).toBe(0);
    await backend.dispose();
  });
});
