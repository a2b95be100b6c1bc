import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KinoraError, type MemoryReport, type ProgressEvent } from '../contract';
import { relativeRms } from '../weights/testing/files';
import { RunControl } from './control';
import { type Frame, type ImageToVideoRequest, imageToVideo } from './image-to-video';
import type { Model } from './model';
import { MemoryPlanner } from './plan';
import { deepened } from './testing/deep';
import { nodeBackend, openTiny } from './testing/model';

const backend = nodeBackend();
/** The tiny model with eight blocks, so that there is something to stream. */
let model: Model;
let planner: MemoryPlanner;
const native = { width: 96, height: 64, frames: 9 };
beforeAll(async () => {
  const tiny = await openTiny();
  model = {
    ...tiny,
    config: { ...tiny.config, transformer: { ...tiny.config.transformer, num_layers: 8 } },
    transformer: deepened(tiny.transformer, 8),
  };
  planner = await MemoryPlanner.create(model.config, model.precision, {
    native,
    chunkTokens: 4096,
    promptTokens: [5, 3],
  });
});
afterAll(() => backend.dispose());
afterEach(() => {
  expect(backend.counters().liveBytes).toBe(0);
  expect(backend.ceiling).toBe(Number.POSITIVE_INFINITY);
});

async function make(
  request: Partial<ImageToVideoRequest> = {},
  onEvent: (event: ProgressEvent) => void = () => undefined,
) {
  const frames: Frame[] = [];
  const plans: MemoryReport[] = [];
  const previews: Uint8ClampedArray[] = [];
  const count = 3 * native.width * native.height;
  const data = Float32Array.from({ length: count }, (_, i) => Math.sin(i / 50) * 0.8);
  backend.resetPeaks();
  const result = await imageToVideo(
    backend,
    model,
    {
      image: { ...native, data },
      prompt: 'a boat on a lake',
      negativePrompt: 'blurry',
      frames: native.frames,
      steps: 3,
      guidanceScale: 5,
      flowShift: 5,
      seed: 7,
      ...request,
    },
    {
      control: new RunControl(),
      onProgress: (event) => {
        if (event.type === 'plan') plans.push(event.memory);
        if (event.type === 'preview') previews.push(event.pixels);
        onEvent(event);
      },
      onFrame: async (frame) => {
        frames.push({ ...frame, data: frame.data.slice() });
      },
    },
  );
  return { frames, plans, previews, result, peak: backend.peakBytes };
}

/** Bit for bit; without a matcher, which would take minutes to show how so many numbers differ. */
const same = (a: readonly Frame[], b: readonly Frame[]) =>
  a.length === b.length &&
  a.every(({ data }, i) => data.every((value, at) => value === b[i]?.data[at]));

const difference = (a: readonly Frame[], b: readonly Frame[]) =>
  Math.max(...a.map(({ data }, i) => relativeRms(data, b[i]?.data ?? [])));

describe('a video within a budget', () => {
  let whole: Awaited<ReturnType<typeof make>>;
  beforeAll(async () => {
    whole = await make();
  }, 60_000);

  test('all of it fits where nobody sets a limit, and the plan is told once', () => {
    expect(whole.plans).toHaveLength(1);
    expect(whole.result.memory).toEqual(whole.plans[0]);
    expect(whole.result.memory).toMatchObject({
      blocks: 8,
      residentBlocks: 8,
      decodeTiles: 1,
      replans: 0,
    });
    expect(whole.peak).toBeLessThanOrEqual(whole.result.memory.budget);
  });

  test.each([0, 0.25, 0.5, 0.75, 1])(
    'the peak stays within a budget at %d of the way from the least to all',
    async (share) => {
      const { least, full } = planner;
      const memoryBudget = Math.ceil(least.peak + share * (full.peak - least.peak)) + 2 ** 18;
      const { frames, result, peak } = await make({ memoryBudget });
      expect(peak).toBeLessThanOrEqual(memoryBudget);
      expect(result.memory.peak).toBeLessThanOrEqual(memoryBudget);
      expect(result.memory.budget).toBe(memoryBudget);
      expect(frames).toHaveLength(native.frames);
      if (result.memory.decodeTiles === 1) expect(same(frames, whole.frames)).toBe(true);
      else expect(difference(frames, whole.frames)).toBeLessThan(2e-2);
    },
  );

  test('too small a budget is refused with both numbers, and nothing stays', async () => {
    const failure = await make({ memoryBudget: 2 ** 20 }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(KinoraError);
    expect(failure).toMatchObject({ code: 'OUT_OF_MEMORY' });
  });

  test('memory that runs out in the middle of the loop: told once, and the same latents', async () => {
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
      if (event.step === 1) runs = 20;
    });
    backend.run = run;
    expect(steps).toEqual([1, 2, 3]);
    expect(plans.map(({ replans }) => replans)).toEqual([0, 1]);
    expect(plans[1]?.residentBlocks).toBeLessThan(8);
    expect(result.memory).toEqual(plans[1]);
    expect(previews).toHaveLength(3);
    expect(previews).toEqual(whole.previews);
    // What the device did not give to the loop, it is not asked for by the decode either.
    expect(difference(frames, whole.frames)).toBeLessThan(2e-2);
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
    expect(made.plans[1]?.peak).toBeLessThan(made.plans[0]?.peak ?? 0);
    expect(made.frames).toHaveLength(native.frames);
    expect(difference(made.frames, whole.frames)).toBeLessThan(2e-2);
  });
});
