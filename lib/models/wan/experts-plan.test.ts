import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { CountingBackend } from '../../gpu';
import { diskFolder } from '../../weights/testing/files';
import { countImageEncoder } from './image-encoder/image-encoder';
import { readModelConfig } from './model-config';
import { planWan, usualChoice } from './model-memory';

const folderOf = (id: string) =>
  diskFolder(fileURLToPath(new URL(`../../../public/models/${id}/`, import.meta.url)));
const gib = 2 ** 30;

async function plannerOf(id: string, width: number, height: number) {
  return planWan(await readModelConfig(folderOf(id)), 'int4', {
    native: { width, height, frames: 81 },
    // Few steps run without guidance.
    promptTokens: [512],
  });
}

test.each(['wan2.2-i2v-a14b', 'wan2.1-i2v-14b-480p'])(
  '81 frames of 832×480 in 4 bits fit 8 GiB with streamed blocks and 12 GiB without: %s',
  { tags: ['full'] },
  async (id) => {
    const planner = await plannerOf(id, 832, 480);
    const { least, full } = planner;
    expect(least.tokens).toBe(32_760);
    expect(least.peak).toBeLessThan(4 * gib);
    expect(planner.fit(8 * gib).peak).toBeLessThan(8 * gib);
    expect(full.peak).toBeLessThan(12 * gib);
  },
);

test('an image encoder whose weights a binding cannot hold is refused with the plan', async () => {
  const { image_encoder: encoder } = await readModelConfig(folderOf('wan2.1-i2v-14b-480p'));
  if (!encoder) throw new TypeError('the model has an image encoder');
  const { compute } = new CountingBackend();
  const limits = { ...compute.limits, bindingBytes: 2 ** 24 };
  const counted = countImageEncoder(encoder, usualChoice('exact'), { ...compute, limits });
  await expect(counted).rejects.toMatchObject({
    code: 'KERNELS_UNAVAILABLE',
    message: expect.stringMatching(/: image-encoder-.* a binding at most 16777216/),
  });
});
