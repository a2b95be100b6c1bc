import { afterAll, describe, expect, test } from 'vitest';
import { isFlagged, safetySchema, uncheckedSafety } from '../contract';
import type { Backend } from '../gpu';
import { nodeBackend } from '../models/wan/testing/model';
import type { Frame } from '../pipeline/latents';
import type { Squares } from '../pipeline/vision/squares';
import { openSafetensors } from '../weights';
import { patchedFolder, safetensorsBytes } from '../weights/testing/files';
import { SafetyCheck, sampledFrames, videoScore } from './check';
import { golden, goldenCheckerFolder, goldenImage, openGoldenChecker } from './testing/golden';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const { signal } = new AbortController();

async function* cpuOnly(): AsyncGenerator<Backend> {
  yield backend;
}

/** A frame of one brightness, 0 … 255. */
const flat = (byte: number): Frame => ({
  data: new Float32Array(3 * 8 * 4).fill(byte / 127.5 - 1),
  width: 8,
  height: 4,
});

const record = { model: 'tiny-vit', sha256: 'a'.repeat(64), threshold: 0.5 };

test.each(golden.aggregate)('$scores are $score', ({ scores, score, nsfw }) => {
  expect(videoScore(scores)).toBeCloseTo(score, 12);
  expect(videoScore(scores) >= 0.5).toBe(nsfw);
});

describe('frames 0, 8, 16 … and the last one are looked at', () => {
  test('for any length', () => {
    for (const [length, frames] of Object.entries(golden.sampled_frames)) {
      expect(sampledFrames(Number(length))).toEqual(frames);
    }
    for (const [length, count] of Object.entries(golden.sampled_count)) {
      expect(sampledFrames(Number(length)).length).toBe(count);
    }
  });

  test.each([1, 8, 9, 17, 100, 121])(
    'of %i frames that come, also before the planned end',
    async (length) => {
      const checker = await openGoldenChecker();
      let seen: readonly Squares[] = [];
      const recording: typeof checker = {
        ...checker,
        score: async (_, images) => {
          seen = images;
          return images.map(() => 0.25);
        },
      };
      const check = new SafetyCheck(recording);
      for (let i = 0; i < length; i++) {
        const frame = flat(i);
        check.take(frame, i);
        frame.data.fill(1); // A frame is valid until it was taken.
      }
      const safety = await check.verdict(cpuOnly, signal);
      expect(seen.map(({ values }) => values[0])).toEqual(golden.sampled_frames[length]);
      expect(safety).toMatchObject({ status: 'clear', score: 0.25 });
      expect(safety.frames.length).toBe(seen.length);
    },
  );
});

describe('the verdict', () => {
  /** A check that has seen one frame: an image of the goldens. */
  async function checkOf(name: 'wide' | 'tall', hooks = {}, folder = goldenCheckerFolder) {
    const checker = await openGoldenChecker(folder);
    const check = new SafetyCheck(checker, hooks);
    const { data, width, height } = await goldenImage(name);
    const plane = width * height;
    const values = Float32Array.from({ length: 3 * plane }, (_, i) => {
      const byte = data[4 * (i % plane) + Math.floor(i / plane)] ?? 0;
      return byte / 127.5 - 1;
    });
    check.take({ data: values, width, height }, 0);
    return check;
  }

  test('is the score of frames and input, by which checker', async () => {
    const check = await checkOf('wide');
    const small = check.checker.squares(await goldenImage('small'));
    const wide = check.checker.squares(await goldenImage('wide'));
    expect(await check.scoreInput([small], cpuOnly, signal)).toBeCloseTo(0.304207, 5);
    // Of a start and an end image the higher score counts.
    expect(await check.scoreInput([small, wide], cpuOnly, signal)).toBeCloseTo(0.695793, 5);
    expect(await check.scoreInput([small], cpuOnly, signal)).toBeCloseTo(0.304207, 5);
    const flagged = await check.verdict(cpuOnly, signal);
    expect(flagged).toEqual({
      ...record,
      status: 'flagged',
      reason: null,
      score: expect.closeTo(0.695793, 5),
      input: expect.closeTo(0.304207, 5),
      frames: [flagged.score],
    });
    expect(safetySchema.parse(flagged)).toEqual(flagged);
    const clear = await (await checkOf('tall')).verdict(cpuOnly, signal);
    expect(clear).toMatchObject({
      status: 'clear',
      score: expect.closeTo(0.040687, 5),
      input: null,
    });
    expect([isFlagged(flagged), isFlagged(clear)]).toEqual([true, false]);
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('comes from the next backend where one fails', async () => {
    const small = nodeBackend();
    small.ceiling = 1000;
    const failures: unknown[] = [];
    const onFailure = ({ code }: { code: string }) => failures.push(code);
    const check = await checkOf('wide', { onFailure });
    async function* both() {
      yield small;
      yield backend;
    }
    expect(await check.verdict(both, signal)).toMatchObject({ status: 'flagged' });
    expect(failures).toEqual(['OUT_OF_MEMORY']);
    expect(small.counters().liveBytes).toBe(0);
    await small.dispose();
  });

  test('of a number that is not finite is none, and counts as flagged', async () => {
    const file = await openSafetensors(await goldenCheckerFolder.open('model.safetensors'));
    const tensors: Record<string, { shape: readonly number[]; data: Float32Array<ArrayBuffer> }> =
      {};
    for (const name of file.names()) {
      const data = Float32Array.from(await file.read(name));
      if (name === 'norm.bias') data[3] = Number.NaN;
      tensors[name] = { shape: file.shape(name), data };
    }
    const broken = patchedFolder(goldenCheckerFolder, {
      'model.safetensors': safetensorsBytes(tensors),
    });
    const failures: unknown[] = [];
    const onFailure = ({ code }: { code: string }) => failures.push(code);
    const check = await checkOf('tall', { onFailure }, broken);
    async function* twice() {
      yield backend;
      yield backend;
    }
    const safety = await check.verdict(twice, signal);
    expect(safety).toEqual({
      ...record,
      status: 'unverified',
      reason: 'failed',
      score: null,
      input: null,
      frames: [],
    });
    expect(isFlagged(safety)).toBe(true);
    expect(failures).toEqual(['CHECK_FAILED', 'CHECK_FAILED']);
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('is none where no backend can be made, and none is given after a cancel', async () => {
    const failures: unknown[] = [];
    const onFailure = ({ message }: { message: string }) => failures.push(message);
    // biome-ignore lint/correctness/useYield: it fails before.
    async function* none(): AsyncGenerator<Backend> {
      throw new Error('no runtime');
    }
    const failed = await (await checkOf('tall', { onFailure })).verdict(none, signal);
    expect(failed).toMatchObject({ status: 'unverified', reason: 'failed' });
    expect(failures).toEqual([expect.stringContaining('no runtime')]);
    const cancelled = (await checkOf('tall')).verdict(
      cpuOnly,
      AbortSignal.abort(new Error('stop')),
    );
    await expect(cancelled).rejects.toThrow('stop');
  });
});

describe('frames have a limit of their own where the checker has one', () => {
  test.each([
    { input: null, frames: 0.8, status: 'clear', threshold: 0.85 },
    { input: 0.59, frames: 0.8, status: 'clear', threshold: 0.85 },
    { input: 0.59, frames: 0.86, status: 'flagged', threshold: 0.85 },
    // The picture is what the video shows: what it was found to be counts.
    { input: 0.61, frames: 0.8, status: 'flagged', threshold: 0.6 },
    { input: 0.61, frames: 0.5, status: 'clear', threshold: 0.6 },
  ])('image $input, frames $frames: $status', async ({ input, frames, ...expected }) => {
    const scores = [...(input === null ? [] : [input]), frames];
    const checker = {
      ...(await openGoldenChecker()),
      threshold: 0.6,
      frameThreshold: 0.85,
      score: async () => scores.splice(0, 1),
    };
    const check = new SafetyCheck(checker);
    const images = [checker.squaresOfFrame(flat(9))];
    if (input !== null) await check.scoreInput(images, cpuOnly, signal);
    check.take(flat(9), 0);
    expect(await check.verdict(cpuOnly, signal)).toMatchObject({
      ...expected,
      input,
      score: frames,
    });
  });
});

test('without a checker the record says so', () => {
  expect(uncheckedSafety('off')).toMatchObject({ status: 'off', reason: null, model: null });
  const missing = uncheckedSafety('unverified', 'missing');
  expect(missing).toMatchObject({ reason: 'missing', score: null, sha256: null });
  expect(isFlagged(missing)).toBe(true);
});
