import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ProgressEvent, parseManifest } from '../contract';
import { type Backend, createBackend, relativeRms } from '../gpu';
import { httpFolder } from '../weights';
import { measureChunkTokens } from './chunk-size';
import { RunControl } from './control';
import { type Frame, imageToVideo } from './image-to-video';
import { type Model, openModel } from './model';
import { MemoryPlanner, type StageName, type StagePlan } from './plan';
import { deepened } from './testing/deep';
import { loadTokenizer } from './tokenizer';
import { tokensPerFrame } from './tokens';

/** As many as do not all fit the least budget, which the decode decides. */
const blocks = 28;
const native = { width: 96, height: 64, frames: 5 };
const prompt = 'a boat on a lake';
const stages = ['text', 'image', 'denoise', 'decode'] as const;

let backend: Backend;
let model: Model;
let planner: MemoryPlanner;
beforeAll(async () => {
  const manifest = parseManifest(await (await fetch('/models/tiny.json')).json());
  const folder = httpFolder(new URL('/e2e/goldens/tiny-wan/model/', location.href));
  const tiny = await openModel(manifest, folder);
  const transformer = { ...tiny.config.transformer, num_layers: blocks };
  const deep = deepened(tiny.transformer, blocks);
  model = { ...tiny, config: { ...tiny.config, transformer }, transformer: deep };
  backend = await createBackend('webgpu');
  const { encodePrompt } = await loadTokenizer(folder);
  const perFrame = tokensPerFrame(transformer, { frames: 2, height: 4, width: 6 });
  planner = await MemoryPlanner.create(model.config, model.precision, {
    native,
    chunkTokens: await measureChunkTokens(backend, transformer, 2 * perFrame),
    promptTokens: [encodePrompt(prompt).length],
  });
});
afterAll(() => backend.dispose());

function stageOf(name: StageName): StagePlan {
  const found = planner.full.stages.find(({ stage }) => stage === name);
  if (!found) throw new TypeError(`the plan lacks ${name}`);
  return found;
}

/** Peaks of a stage, from the end of the one before. */
interface StagePeak {
  readonly bytes: number;
  readonly categories: Readonly<Record<string, { readonly peak: number }>>;
}

async function make(memoryBudget: number) {
  backend.resetPeaks();
  const peaks: StagePeak[] = [];
  const onProgress = (event: ProgressEvent) => {
    if (event.type !== 'memory') return;
    peaks.push({ bytes: backend.peakBytes, categories: event.categories });
    backend.resetPeaks();
  };
  const frames: Frame[] = [];
  const data = Float32Array.from(
    { length: 3 * native.width * native.height },
    (_, i) => Math.sin(i / 50) * 0.8,
  );
  const { memory } = await imageToVideo(
    backend,
    model,
    {
      image: { ...native, data },
      prompt,
      negativePrompt: '',
      frames: native.frames,
      steps: 1,
      guidanceScale: 1,
      flowShift: 5,
      seed: 7,
      memoryBudget,
    },
    {
      control: new RunControl(),
      onProgress,
      onFrame: async (frame) => {
        frames.push({ ...frame, data: frame.data.slice() });
      },
    },
  );
  return { frames, memory, peaks };
}

const difference = (a: readonly Frame[], b: readonly Frame[]) =>
  Math.max(...a.map(({ data }, i) => relativeRms(data, b[i]?.data ?? data.map(() => 0))));

describe('a video on the GPU within a budget', () => {
  let whole: Awaited<ReturnType<typeof make>>;

  test('with everything on the device, each stage takes what was planned for it', async () => {
    whole = await make(planner.full.peak);
    expect(whole.memory).toMatchObject({ residentBlocks: blocks, decodeTiles: 1, replans: 0 });
    expect(whole.peaks).toHaveLength(stages.length);
    for (const [index, name] of stages.entries()) {
      const planned = stageOf(name);
      const { bytes, categories } = whole.peaks[index] ?? { bytes: Number.NaN, categories: {} };
      const peak = (category: string) => categories[category]?.peak ?? 0;
      console.log(`${name}: ${bytes} bytes, ${planned.peak} planned`);
      expect(bytes).toBeLessThanOrEqual(planner.full.peak);
      // Buffers are rounded up to 16 bytes.
      expect(Math.abs(planned.weights / peak('weights') - 1)).toBeLessThan(0.02);
    }
  });

  test('in the least budget, blocks are streamed, the decode is tiled, and no stage goes beyond', async () => {
    const budget = planner.least.peak;
    const { frames, memory, peaks } = await make(budget);
    console.log(`${peaks.map(({ bytes }) => bytes).join(', ')} of ${budget} bytes`, memory);
    expect(memory.peak).toBeLessThanOrEqual(budget);
    expect(memory.residentBlocks).toBeLessThan(blocks);
    expect(memory.decodeTiles).toBeGreaterThan(1);
    for (const { bytes } of peaks) expect(bytes).toBeLessThanOrEqual(budget);
    expect(frames).toHaveLength(native.frames);
    expect(difference(frames, whole.frames)).toBeLessThan(2e-2);
  });

  test('a byte less than the least is refused with both numbers, and nothing is held', async () => {
    await expect(make(planner.least.peak - 1)).rejects.toMatchObject({
      code: 'OUT_OF_MEMORY',
      message: expect.stringMatching(/needs [\d,]+ MiB of GPU memory at least; [\d,]+ MiB may be/),
    });
    await backend.releaseSessions();
    expect(backend.counters().liveBytes).toBe(0);
    expect(backend.ceiling).toBe(Number.POSITIVE_INFINITY);
  });
});
