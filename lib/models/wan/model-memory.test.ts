import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Precision, parseManifest } from '../../contract';
import { CountingBackend } from '../../gpu';
import { memoised } from '../../graph';
import {
  longestClip,
  type MemoryPlan,
  type MemoryPlanner,
  memoryReport,
} from '../../pipeline/memory/memory-plan';
import { readModelConfig } from './model-config';
import { planWan, usualChoice, type WanPlanRequest } from './model-memory';
import { realFolder } from './testing/model';

const models = new URL('../../../public/models/', import.meta.url).pathname;
const gibibyte = 2 ** 30;

/** What several tests ask for is planned once. */
const plannerOf = memoised(async (precision: Precision, more: Partial<WanPlanRequest> = {}) => {
  const text = await readFile(`${models}wan2.2-ti2v-5b.json`, 'utf8');
  const native = longestClip(parseManifest(JSON.parse(text)), '1280*720');
  const config = await readModelConfig(realFolder);
  return planWan(config, precision, { native, ...more });
});

const stageOf = (plan: MemoryPlan, name: string) =>
  plan.stages.find(({ stage }) => stage === name) as MemoryPlan['stages'][number];

describe('the memory plan of the real 5B at 1280×704×121', () => {
  let planner: MemoryPlanner;
  beforeAll(async () => {
    planner = await plannerOf('int8');
  });

  test.each([
    ['fast', 6.8, 2],
    ['runtime', 15.6, 3.2],
  ] as const)(
    '%s: what computes is counted',
    { tags: ['full'] },
    async (setting, most, mostOfLeast) => {
      const { full, least } = await plannerOf('int8', { kernels: usualChoice(setting) });
      for (const [{ peak }, gibibytes] of [
        [full, most],
        [least, mostOfLeast],
      ] as const) {
        const bound = gibibytes * gibibyte;
        expect(peak).toBeLessThan(bound);
        expect(peak).toBeGreaterThan(bound - gibibyte / 4);
      }
    },
  );

  test('stays within 6.75 GiB with 8-bit weights resident, and within 1.9 GiB with all streamed', () => {
    const { peak, stages, tokens, native } = planner.full;
    expect(native).toEqual({ width: 1280, height: 704, frames: 121 });
    expect(tokens).toBe(27_280);
    expect(peak / gibibyte).toBeLessThan(6.75);
    expect(planner.least.peak / gibibyte).toBeLessThan(1.9);
    const denoise = stageOf(planner.full, 'denoise');
    // 4,907,335,680 block weights at 9 bits; the rest, and all biases and norms, in f32.
    const around = 4_999_787_712 - 4_907_335_680;
    expect(denoise.weights).toBe(4_907_335_680 * 1.125 + around * 4);
    // The residual streams of both branches in f32, keys and values in f16; the solver's nine tensors of latents.
    const tensor = 27_280 * 3072 * 4;
    const latents = 9 * 26_400 * 192 * 4;
    expect(denoise.activations).toBeGreaterThan(3 * tensor + latents);
    expect(denoise.activations).toBeLessThan(3 * tensor + latents + gibibyte / 12);
    expect(denoise.activations / gibibyte).toBeLessThan(1.2);
    expect(denoise.runtime).toBeLessThan(gibibyte / 4);
    for (const { peak: sum, weights, activations, caches } of stages) {
      expect(sum).toBeGreaterThanOrEqual(Math.max(weights, activations, caches));
      expect(sum).toBeGreaterThan(0);
    }
  });

  test('4-bit weights take five ninths of what 8-bit ones do, f32 ones do not fit at all', {
    tags: ['full'],
  }, async () => {
    const [{ blockBytes }] = planner.costs.denoising;
    const half = await plannerOf('int4');
    expect(half.full.peak / gibibyte).toBeLessThan(5.55);
    expect(half.least.peak / gibibyte).toBeLessThan(1.75);
    const plain = await plannerOf('f32');
    // Norms, biases and tables are f32 in both.
    expect(half.costs.denoising[0].blockBytes / blockBytes).toBeCloseTo(5 / 9, 2);
    expect(plain.full.peak / gibibyte).toBeGreaterThan(19);
  });

  test('every budget from the least one up has a plan within it, and more of it keeps more', () => {
    const { least, full } = planner;
    const kept: [chunkTokens: number, residentBlocks: number][] = [];
    for (let budget = least.peak; budget <= full.peak + gibibyte; budget += gibibyte / 16) {
      const plan = planner.fit(budget);
      expect(plan.peak).toBeLessThanOrEqual(budget);
      const report = memoryReport(plan, budget, 0);
      kept.push([report.chunkTokens, report.residentBlocks]);
      if (report.residentBlocks < 30) expect([2, 3]).toContain(plan.residency.bufferSets);
    }
    // Larger chunks first, then more blocks.
    expect(kept).toEqual(kept.toSorted(([a, m], [b, n]) => a - b || m - n));
    expect(kept[0]).toEqual([least.chunkTokens, 0]);
    expect(kept.at(-1)).toEqual([full.chunkTokens, 30]);
    expect(new Set(kept.map(([chunkTokens]) => chunkTokens)).size).toBeGreaterThan(1);
    expect(planner.fit(full.peak)).toEqual(full);
  });

  test('the least budget is well below the full one, and less is refused with both numbers', () => {
    const { least, full } = planner;
    expect(least.peak).toBeLessThan(Math.min(full.peak / 2, 3 * gibibyte));
    expect(least.residency).toEqual({ residentBlocks: 0, bufferSets: 2 });
    expect(least.tiles).not.toBe('full');
    expect(() => planner.fit(least.peak - 1)).toThrow(
      expect.objectContaining({
        code: 'OUT_OF_MEMORY',
        message: expect.stringMatching(
          /needs [\d,]+ MiB of GPU memory at least; [\d,]+ MiB may be/,
        ),
      }),
    );
  });

  test('the runtime takes more: it keeps f32, copies and intermediates', {
    tags: ['full'],
  }, async () => {
    const runtime = await plannerOf('int8', { kernels: null });
    expect(stageOf(runtime.full, 'denoise').activations).toBeGreaterThan(4 * 27_280 * 3072 * 4);
    expect(stageOf(runtime.full, 'denoise').peak).toBeGreaterThan(
      stageOf(planner.full, 'denoise').peak + 1.5 * gibibyte,
    );
  });

  test('a buffer that the device does not take is not planned, where it can be helped', {
    tags: ['full'],
    timeout: 240_000,
  }, async () => {
    // As kernels of our own nothing is larger than a tensor of the tokens.
    const { largest } = (await plannerOf('int8', { kernels: null })).full;
    // One tensor of the tokens, the least that any plan has.
    const hidden = 27_280 * 3072 * 4;
    expect(largest).toBeGreaterThan(hidden);
    const limited = await plannerOf('int8', { kernels: null, largestBuffer: hidden });
    expect(limited.full.largest).toBe(hidden);
    expect(limited.full.tiles).not.toBe('full');
    expect(limited.fit(limited.full.peak)).toEqual(limited.full);
    for (const stage of limited.least.stages) expect(stage.largest).toBeLessThanOrEqual(hidden);

    const refusing = await plannerOf('int8', { largestBuffer: 2 ** 28 });
    expect(() => refusing.fit(64 * gibibyte)).toThrow(
      expect.objectContaining({
        code: 'OUT_OF_MEMORY',
        message: 'This video needs 320 MiB in one buffer; this GPU takes at most 256 MiB in one.',
      }),
    );
  });

  test('rows that a binding cannot hold come in smaller chunks, and weights that it cannot hold are refused', {
    tags: ['full'],
  }, async () => {
    const { compute: unlimited } = new CountingBackend();
    const limits = { ...unlimited.limits, bindingBytes: 2 ** 27 };
    const compute = { ...unlimited, limits };
    const exact = usualChoice('exact');
    // The inner layer's rows of 2,640 tokens are 144 MiB, those of 1,760 tokens 96.
    const kernels = exact && ({ ...exact, storage: 'f32' } as const);
    const { full } = await plannerOf('int8', { kernels, compute });
    expect(full.chunkTokens).toBe(1760);
    expect((await plannerOf('int8', { kernels })).full.chunkTokens).toBe(2640);
    await expect(plannerOf('f32', { compute })).rejects.toMatchObject({
      code: 'KERNELS_UNAVAILABLE',
      message: expect.stringMatching(
        /: cross-attention-feed-forward: linear f32 .* a binding at most/,
      ),
    });
  });

  test('short prompts, and none against guidance, take less', { tags: ['full'] }, async () => {
    const short = await plannerOf('int8', { promptTokens: [60, 120] });
    const alone = await plannerOf('int8', { promptTokens: [60] });
    // Rows of context in f32; its keys and values lie in the memory of the clip's, which the block has done with.
    const rows = 512 - 61 + (512 - 121);
    expect(stageOf(short.full, 'denoise').peak).toBeLessThanOrEqual(
      stageOf(planner.full, 'denoise').peak - rows * 3072 * 4,
    );
    // Without guidance there is no second residual stream.
    expect(
      stageOf(short.full, 'denoise').peak - stageOf(alone.full, 'denoise').peak,
    ).toBeGreaterThan(27_280 * 3072 * 4);
  });
});
