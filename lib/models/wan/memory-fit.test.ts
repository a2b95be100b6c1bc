/** @module-tag full */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KinoraError, type ProgressEvent } from '../../contract';
import type { Frame } from '../../pipeline/latents';
import type { MemoryPlanner } from '../../pipeline/memory/memory-plan';
import type { ImageToVideoRequest } from '../../pipeline/run';
import { loadTokenizer } from '../umt5/tokenizer';
import { planWan } from './model-memory';
import type { WanParts } from './parts';
import { deepened } from './testing/deep';
import { nodeBackend, openTiny, transformerOf } from './testing/model';
import {
  difference,
  makeVideo,
  smoothImage,
  type VideoOptions,
  videoDefaults,
} from './testing/video';

const backend = nodeBackend();
// What runs out here are the runtime's tensors.
backend.runtimeOnly = true;
/** The tiny model with so many blocks that denoising takes more than the decode of whole frames. */
const blocks = 40;
let model: WanParts;
let planner: MemoryPlanner;
const { prompt, negativePrompt } = videoDefaults;
const native = { width: 96, height: 64, frames: 9 };
beforeAll(async () => {
  const tiny = await openTiny();
  model = {
    ...tiny,
    config: { ...tiny.config, transformer: { ...tiny.config.transformer, num_layers: blocks } },
    experts: new Map([['transformer', deepened(transformerOf(tiny), blocks)]]),
  };
  const { encodePrompt } = await loadTokenizer(model.folder);
  planner = await planWan(model.config, model.precision, {
    native,
    kernels: null,
    chunkTokens: 4096,
    promptTokens: [prompt, negativePrompt].map((text) => encodePrompt(text).length),
  });
});
afterAll(() => backend.dispose());
afterEach(() => {
  expect(backend.counters().liveBytes).toBe(0);
  expect(backend.ceiling).toBe(Number.POSITIVE_INFINITY);
});

async function make(
  {
    memoryBudget,
    ...request
  }: Partial<ImageToVideoRequest> & Pick<VideoOptions, 'memoryBudget'> = {},
  onEvent: (event: ProgressEvent) => void = () => undefined,
  of: WanParts = model,
) {
  backend.resetPeaks();
  const wanted = { image: smoothImage(native), steps: 2, guidanceScale: 5, ...request };
  const { frames, events, result } = await makeVideo(backend, of, wanted, {
    onEvent,
    memoryBudget,
  });
  return {
    frames,
    result,
    peak: backend.peakBytes,
    plans: events.flatMap((event) => (event.type === 'plan' ? [event.memory] : [])),
    tileEvents: events.flatMap((event) => (event.type === 'tile' ? [event] : [])),
    previews: events.flatMap((event) => (event.type === 'preview' ? [event.pixels] : [])),
  };
}

/** Bit for bit; without a matcher, which would take minutes to show how so many numbers differ. */
const same = (a: readonly Frame[], b: readonly Frame[]) =>
  a.length === b.length &&
  a.every(({ data }, i) => data.every((value, at) => value === b[i]?.data[at]));

describe('a video within a budget', () => {
  let whole: Awaited<ReturnType<typeof make>>;
  beforeAll(async () => {
    whole = await make();
  }, 60_000);

  test('without a limit all of it fits, and the plan is reported once', () => {
    expect(whole.plans).toHaveLength(1);
    expect(whole.result.memory).toEqual(whole.plans[0]);
    expect(whole.result.memory).toMatchObject({
      blocks,
      residentBlocks: blocks,
      decodeTiles: 1,
      replans: 0,
    });
    expect(whole.peak).toBeLessThanOrEqual(whole.result.memory.budget);
  });

  const decodePeak = () => planner.full.stages.find(({ stage }) => stage === 'decode')?.peak ?? 0;

  test.each([
    { title: 'the least', at: () => planner.least.peak, tiles: 2, streamed: true },
    { title: 'what whole frames take', at: decodePeak, tiles: 1, streamed: true },
    { title: 'all', at: () => planner.full.peak, tiles: 1, streamed: false },
  ])(
    'the peak stays within a budget of $title',
    { tags: ['full'] },
    async ({ at, tiles, streamed }) => {
      const memoryBudget = at();
      const { frames, result, peak, tileEvents } = await make({ memoryBudget });
      const { memory } = result;
      expect(peak).toBeLessThanOrEqual(memoryBudget);
      expect(memory.peak).toBeLessThanOrEqual(memoryBudget);
      expect(memory).toMatchObject({ budget: memoryBudget, budgetSet: true, decodeTiles: tiles });
      expect(memory.residentBlocks < blocks).toBe(streamed);
      expect(frames).toHaveLength(native.frames);
      if (tiles === 1) {
        expect(tileEvents).toEqual([]);
        expect(same(frames, whole.frames)).toBe(true);
        return;
      }
      expect(difference(frames, whole.frames)).toBeLessThan(2e-2);
      const counted = Array.from({ length: tiles * native.frames }, (_, i) => ({
        tile: Math.floor(i / native.frames) + 1,
        tiles,
        frame: (i % native.frames) + 1,
        frames: native.frames,
      }));
      expect(tileEvents).toMatchObject(counted);
    },
  );

  test('on the CPU main memory bounds a run: blocks stream, to the same frames, and nothing is refused', async () => {
    try {
      backend.mainMemory = decodePeak();
      const bounded = await make({ memoryBudget: 'probe' });
      expect(bounded.peak).toBeLessThanOrEqual(decodePeak());
      expect(bounded.result.memory.residentBlocks).toBeLessThan(blocks);
      expect(same(bounded.frames, whole.frames)).toBe(true);
      backend.mainMemory = 1;
      const { result } = await make({ memoryBudget: 'probe' });
      expect(result.memory.budget).toBe(planner.least.peak);
    } finally {
      backend.mainMemory = Number.POSITIVE_INFINITY;
    }
  });

  test('memory that runs out in the middle of the loop: reported once, and the same latents', async () => {
    const run = backend.run.bind(backend);
    let runs = Number.POSITIVE_INFINITY;
    backend.run = async (graph, inputs, outputs) => {
      runs -= 1;
      if (runs === 0) {
        // Another program takes what is left: one more tensor of ours does not fit.
        backend.ceiling = backend.counters().liveBytes;
        try {
          backend.tensor('float32', [4], 'activations').dispose();
        } finally {
          backend.ceiling = Number.POSITIVE_INFINITY;
        }
      }
      return run(graph, inputs, outputs);
    };
    const steps: number[] = [];
    const { frames, plans, previews, result } = await make({}, (event) => {
      if (event.type !== 'step') return;
      steps.push(event.step);
      if (event.step === 1) runs = 200;
    });
    backend.run = run;
    expect(steps).toEqual([1, 2]);
    expect(plans.map(({ replans }) => replans)).toEqual([0, 1]);
    expect(plans[1]?.residentBlocks).toBeLessThan(blocks);
    expect(result.memory).toEqual(plans[1]);
    expect(previews).toHaveLength(2);
    expect(previews).toEqual(whole.previews);
    // The decode is asked for what it needs all the same, so the video is the same.
    expect(result.memory.decodeTiles).toBe(1);
    expect(same(frames, whole.frames)).toBe(true);
  });

  test('memory that runs out while decoding: the clip goes on in tiles', async () => {
    const take = backend.tensor.bind(backend);
    let frames = 0;
    backend.tensor = (dtype, dims, category, data) => {
      if (frames === 0 && category === 'caches') {
        frames = 1;
        throw new KinoraError('OUT_OF_MEMORY');
      }
      return take(dtype, dims, category, data);
    };
    const made = await make();
    backend.tensor = take;
    expect(made.result.memory).toMatchObject({ replans: 1 });
    expect(made.plans.map(({ replans }) => replans)).toEqual([0, 1]);
    expect(made.plans.map(({ decodeTiles }) => decodeTiles)).toEqual([1, 2]);
    expect(made.frames).toHaveLength(native.frames);
    expect(difference(made.frames, whole.frames)).toBeLessThan(2e-2);
  });

  test('main memory that runs out while decoding is reported, and not tried again', async () => {
    const collect = backend.collect.bind(backend);
    const phases: string[] = [];
    backend.collect = (staged) => {
      // No array can be that large: the engine itself refuses.
      if (phases.at(-1) === 'decode') new Float32Array(2 ** 52);
      return collect(staged);
    };
    const failure = await make({ memoryBudget: planner.least.peak, steps: 1 }, (event) => {
      if (event.type === 'phase') phases.push(event.phase);
    }).catch((error: unknown) => error);
    backend.collect = collect;
    expect(failure).toMatchObject({
      code: 'OUT_OF_MEMORY',
      message: expect.stringMatching(/^Decoding in tiles takes 1 MiB of main memory/),
      remedy: expect.stringMatching(/allow more GPU memory/),
    });
  });

  test('a frame with invalid numbers is refused, in whole frames too', async () => {
    const broken: WanParts = {
      ...model,
      vae: Object.assign(Object.create(model.vae) as WanParts['vae'], {
        read: async (name: string) => {
          const data = await model.vae.read(name);
          return name === 'decoder.conv_out.bias' ? data.map(() => Number.NaN) : data;
        },
      }),
    };
    await expect(make({ steps: 1 }, undefined, broken)).rejects.toMatchObject({
      code: 'LATENTS_NOT_FINITE',
      message: expect.stringMatching(/^Frame 1 of the decoded clip/),
    });
  });
});
