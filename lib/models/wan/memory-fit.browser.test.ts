/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ProgressEvent, parseManifest } from '../../contract';
import { type Backend, createBackend } from '../../gpu';
import type { MemoryPlanner } from '../../pipeline/memory/memory-plan';
import { httpFolder } from '../../weights';
import { loadTokenizer } from '../umt5/tokenizer';
import { measureChunkTokens } from './chunk-size';
import { planWan } from './model-memory';
import { openParts, type WanParts } from './parts';
import { deepened } from './testing/deep';
import { difference, makeVideo, smoothImage, videoDefaults } from './testing/video';
import { tokensPerFrame } from './tokens';

/** As many as do not all fit the least budget, which the decode decides. */
const blocks = 28;
/** Too small for tiles: each shape that is compiled takes time on a software GPU. */
const native = { width: 64, height: 32, frames: 5 };
const { prompt } = videoDefaults;
const stages = ['text', 'image', 'denoise', 'decode'] as const;

let backend: Backend;
/** The same numbers up to rounding, and no shaders. */
let reference: Backend;
let model: WanParts;
let planner: MemoryPlanner;
beforeAll(async () => {
  const manifest = parseManifest(await (await fetch('/models/tiny.json')).json());
  const folder = httpFolder(
    new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href),
  );
  const tiny = await openParts(manifest, folder);
  const transformer = { ...tiny.config.transformer, num_layers: blocks };
  const weights = tiny.experts.get('transformer');
  if (!weights) throw new TypeError('the model has no transformer');
  const experts = new Map([['transformer', deepened(weights, blocks)]] as const);
  model = { ...tiny, config: { ...tiny.config, transformer }, experts };
  backend = await createBackend('webgpu');
  reference = await createBackend('wasm');
  const { encodePrompt } = await loadTokenizer(folder);
  const perFrame = tokensPerFrame(transformer, { frames: 2, height: 2, width: 4 });
  planner = await planWan(model.config, model.precision, {
    native,
    kernels: null,
    chunkTokens: await measureChunkTokens(backend, transformer, 2 * perFrame),
    promptTokens: [encodePrompt(prompt).length],
  });
});
afterAll(() => Promise.all([backend.dispose(), reference.dispose()]));

/** Peaks of a stage, from the end of the one before. */
interface StagePeak {
  readonly bytes: number;
  readonly categories: Readonly<Record<string, { readonly peak: number }>>;
}

async function make(backend: Backend, memoryBudget?: number) {
  backend.resetPeaks();
  const peaks: StagePeak[] = [];
  const onEvent = (event: ProgressEvent) => {
    if (event.type !== 'memory') return;
    peaks.push({ bytes: backend.peakBytes, categories: event.categories });
    backend.resetPeaks();
  };
  const { frames, result } = await makeVideo(
    backend,
    model,
    {
      image: smoothImage(native),
      negativePrompt: '',
      frames: native.frames,
      steps: 1,
    },
    { onEvent, memoryBudget },
  );
  return { frames, memory: result.memory, peaks };
}

describe('a video on the GPU within a budget', () => {
  test('in the least budget blocks are streamed, and no stage takes more than was planned', async () => {
    const { least } = planner;
    const whole = await make(reference);
    const { frames, memory, peaks } = await make(backend, least.peak);
    console.log(`${peaks.map(({ bytes }) => bytes).join(', ')} of ${least.peak} bytes`, memory);
    expect(memory.peak).toBeLessThanOrEqual(least.peak);
    expect(memory).toMatchObject({ replans: 0, budget: least.peak });
    expect(memory.residentBlocks).toBeLessThan(blocks);
    expect(peaks).toHaveLength(stages.length);
    const plan = planner.fit(least.peak);
    for (const [index, name] of stages.entries()) {
      const planned = plan.stages.find(({ stage }) => stage === name)?.weights ?? 0;
      const { bytes, categories } = peaks[index] ?? { bytes: Number.NaN, categories: {} };
      expect(bytes).toBeLessThanOrEqual(least.peak);
      // Buffers are rounded up to 16 bytes.
      expect(Math.abs(planned / (categories.weights?.peak ?? 0) - 1)).toBeLessThan(0.02);
    }
    expect(frames).toHaveLength(native.frames);
    expect(difference(frames, whole.frames)).toBeLessThan(1e-3);
  });
});
