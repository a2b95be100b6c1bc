import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { parseManifest } from '../contract';
import { diskFolder } from '../weights/testing/files';
import { readModelConfig } from './config';
import { planMemory } from './plan';

const models = new URL('../../public/models/', import.meta.url).pathname;
const gibibyte = 2 ** 30;

async function plan(precision?: 'f32' | 'int8') {
  const text = await readFile(`${models}wan2.2-ti2v-5b.json`, 'utf8');
  const manifest = parseManifest(JSON.parse(text));
  const config = await readModelConfig(diskFolder(models + manifest.base));
  return planMemory(config, manifest, {
    size: '1280*720',
    ...(precision ? { precision } : {}),
  });
}

describe('the memory plan of the real 5B at 1280×704×121', () => {
  test('stays within 12 GiB with 8-bit weights resident', async () => {
    const { peak, stages, tokens, native } = await plan();
    expect(native).toEqual({ width: 1280, height: 704, frames: 121 });
    expect(tokens).toBe(27_280);
    expect(peak / gibibyte).toBeLessThan(12);
    const denoise = stages.find(({ stage }) => stage === 'denoise');
    // 4,907,335,680 block weights at 9 bits; the rest, and all biases and norms, in f32.
    const around = 4_999_787_712 - 4_907_335_680;
    expect(denoise?.weights).toBe(4_907_335_680 * 1.125 + around * 4);
    // Hidden state twice (shared and working), keys and values: 4 tensors of 27,280 × 3,072.
    expect(denoise?.activations).toBeGreaterThan(4 * 27_280 * 3072 * 4);
    for (const { peak: sum, weights, activations, caches } of stages) {
      expect(sum).toBeGreaterThanOrEqual(Math.max(weights, activations, caches));
      expect(sum).toBeGreaterThan(0);
    }
  });

  test('f32 weights do not fit, and the plan says so', async () => {
    const { peak } = await plan('f32');
    expect(peak / gibibyte).toBeGreaterThan(20);
  });
});
