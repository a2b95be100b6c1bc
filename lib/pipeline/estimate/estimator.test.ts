import { expect, test } from 'vitest';
import type { ProgressEvent } from '../../contract';
import { testManifest } from '../../contract/testing/manifest';
import type { Sampling } from '../profiles';
import { type Paces, RunEstimator } from './estimator';
import { type CountedRun, stagesOf, usualRates } from './stages';

/** Seconds of the parts of a simulated run. */
interface Device {
  readonly open: number;
  readonly text: number;
  readonly image: number;
  readonly load: number;
  /** Of a pass, and before the first one. */
  readonly pass: number;
  readonly compile: number;
  /** Of a frame: to be decoded, and to be encoded. */
  readonly decode: number;
  readonly encode: number;
}

const device: Device = {
  open: 2,
  text: 20,
  image: 4,
  load: 10,
  pass: 5,
  compile: 8,
  decode: 0.5,
  encode: 0.25,
};

const sampling: Sampling = {
  scheduler: { kind: 'unipc' },
  steps: 10,
  guidanceScale: 5,
  guidedSteps: 5,
  flowShift: 5,
  decoder: 'full' as const,
};

const frames = 241;
const work: CountedRun = {
  manifest: testManifest(),
  counts: {
    latents: { strides: { time: 4, space: 16 } },
    computation: () => ({ pass: { flops: 1e13, calls: 0 }, decode: { flops: 2e13, calls: 0 } }),
    weightBytes: (stage) => (stage === 'text' ? 1e9 : 5e8),
  },
  sampling,
  size: '1280*720',
  frames,
  finishing: {},
  checkedFrames: 0,
};

/** A run whose clock moves as the simulated device works. */
class Simulation {
  seconds = 1000;
  readonly estimator: RunEstimator;
  readonly said: { at: number; share: number; left: number }[] = [];
  finishing = false;

  constructor(remembered: Paces, of: CountedRun = work) {
    this.estimator = new RunEstimator(
      stagesOf(of, 'gpu'),
      remembered,
      () => this.finishing,
      () => this.seconds,
    );
  }

  /** Time passes, and each second is looked at the estimate. */
  pass(seconds: number): void {
    for (let left = seconds; left > 0; left -= 1) {
      this.seconds += Math.min(1, left);
      this.look();
    }
  }

  look(): void {
    const { share, secondsRemaining: left } = this.estimator.current();
    this.said.push({ at: this.seconds - 1000, share, left });
  }

  take(event: ProgressEvent): void {
    this.estimator.take(event);
    this.look();
  }

  phase(phase: 'load' | 'text' | 'image' | 'denoise' | 'decode' | 'finish', clip = 0): void {
    this.take({ type: 'phase', phase, clip, clips: 2 });
  }

  steps(from: number, to: number, { pass }: Device, clip: number, compile: number): void {
    for (let step = from; step <= to; step++) {
      this.pass(
        pass * (step <= (sampling.guidedSteps ?? 0) ? 2 : 1) + (step === from ? compile : 0),
      );
      this.take({ type: 'step', step, steps: 10, clip, clips: 2, secondsPerStep: pass });
    }
  }

  frames(from: number, to: number, { decode, encode }: Device): void {
    for (let frame = from; frame <= to; frame++) {
      this.pass(decode + encode);
      this.take({ type: 'frame', frame, frames });
    }
  }

  start(of: Device): void {
    this.phase('load');
    this.pass(of.open);
    this.phase('text');
    this.pass(of.text);
    this.take({ type: 'bytes', bytesDone: 1, bytesTotal: 1 });
  }

  load(of: Device, clip: number): void {
    this.phase('image', clip);
    this.pass(of.image);
    this.phase('load', clip);
    this.pass(of.load);
    this.phase('denoise', clip);
  }

  run(of: Device): void {
    this.start(of);
    for (const clip of [0, 1]) {
      this.load(of, clip);
      this.steps(1, 10, of, clip, clip === 0 ? of.compile : 0);
      this.phase('decode', clip);
      this.frames(clip * 121 + 1, 121 + clip * 120, of);
    }
    this.phase('finish');
    this.pass(0.1);
  }

  /** Seconds of the whole run. */
  get total(): number {
    return this.said.at(-1)?.at ?? 0;
  }

  /** Where the shares are farthest from the truth; they never fall. */
  worstShare(): number {
    for (const [i, { share }] of this.said.entries()) {
      expect(share).toBeGreaterThanOrEqual(this.said[i - 1]?.share ?? 0);
    }
    return Math.max(...this.said.map(({ at, share }) => Math.abs(share - at / this.total)));
  }
}

const first = new Simulation({});
first.run(device);
const remembered = first.estimator.measured();

test('with the paces of an earlier run the share is the truth, in every phase', () => {
  const second = new Simulation(remembered);
  second.run(device);
  expect(second.worstShare()).toBeLessThan(0.04);
  const [begin] = second.said;
  expect(Math.abs((begin?.left ?? 0) / second.total - 1)).toBeLessThan(0.05);
});

test('a first run tells a time from its beginning, and about the truth once two steps are measured', () => {
  expect(first.said[0]?.left).toBeGreaterThan(0);
  first.worstShare();
  const ofSteps = first.said.filter(({ at }) => at > 60 && at < 120);
  expect(ofSteps).not.toHaveLength(0);
  for (const { at, left } of ofSteps) {
    // The decode, of which nothing is known, is taken to be as much slower as denoising.
    expect(left / (first.total - at)).toBeGreaterThan(0.5);
    expect(left / (first.total - at)).toBeLessThan(1.5);
  }
});

test('a first step that does not end raises what is expected of the others', () => {
  const run = new Simulation({});
  run.start(device);
  run.load(device, 0);
  const before = run.said.at(-1)?.left ?? 0;
  run.pass(600);
  // A tenth of the guided passes of the first clip is done by then, at most.
  expect(run.said.at(-1)?.left).toBeGreaterThan(Math.max(600 * 14, 2 * before));
});

test('before a run begins its time is known from the paces of an earlier one, and rough without', () => {
  const known = new RunEstimator(stagesOf(work, 'gpu'), remembered);
  expect(known.isMeasured).toBe(true);
  expect(Math.abs(known.secondsLeft() / first.total - 1)).toBeLessThan(0.05);
  expect(new RunEstimator(stagesOf(work, 'gpu'), {}).isMeasured).toBe(false);
});

test('it is known from two steps on, or from an earlier run, what is ahead', () => {
  const run = new Simulation({});
  run.start(device);
  run.load(device, 0);
  expect(run.estimator.isKnown).toBe(false);
  run.steps(1, 1, device, 0, device.compile);
  expect(run.estimator.isKnown).toBe(false);
  run.steps(2, 2, device, 0, 0);
  expect(run.estimator.isKnown).toBe(true);
  expect(new Simulation(remembered).estimator.isKnown).toBe(true);
  const single = new Simulation({});
  single.start(device);
  single.load(device, 0);
  single.steps(1, 1, device, 0, device.compile);
  single.phase('decode');
  expect(single.estimator.isKnown).toBe(false);
  single.frames(1, 60, device);
  expect(single.estimator.isKnown).toBe(true);
});

test('measured paces are those of the device, with the kernels that it compiled', () => {
  const passes = 2 * (2 * 5 + 5);
  const usual = passes * 1e13 * usualRates.gpu.operation;
  expect(remembered.denoise).toBeCloseTo((passes * device.pass + device.compile) / usual, 5);
});

test('clips that keep the motion are decoded as one, of all frames, after the last step', () => {
  const join = { keepsMotion: true, shared: 2 };
  const stages = stagesOf({ ...work, join }, 'gpu').slice(-5);
  expect(stages.map(({ phase, clip }) => `${phase} ${clip}`)).toEqual([
    'image 1',
    'load 1',
    'denoise 1',
    'decode 1',
    'finish 0',
  ]);
  expect(stages[3]?.frames).toBe(frames);
});

test('steps that take longer than before raise the time left', () => {
  const run = new Simulation(remembered);
  run.start(device);
  run.load(device, 0);
  run.steps(1, 3, device, 0, device.compile);
  const before = run.said.at(-1)?.left ?? 0;
  run.steps(4, 8, { ...device, pass: 15 }, 0, 0);
  // Two steps of this clip and ten of the next one, 17 passes.
  expect(run.said.at(-1)?.left).toBeGreaterThan(17 * 15);
  expect(run.said.at(-1)?.left).toBeGreaterThan(before);
});

test('where memory ran out, weights are loaded again and the steps that are done stay done', () => {
  const run = new Simulation(remembered);
  run.start(device);
  run.load(device, 0);
  run.steps(1, 5, device, 0, device.compile);
  const before = run.said.at(-1);
  run.phase('load');
  run.pass(device.load);
  run.phase('denoise');
  const { left = 0, share = 0 } = run.said.at(-1) ?? {};
  expect(Math.abs((left ?? 0) - (before?.left ?? 0))).toBeLessThan(1);
  expect(share).toBeGreaterThanOrEqual(before?.share ?? 1);
});

test('a run that is resumed counts what is done, and what is left from there', () => {
  const whole = new Simulation(remembered);
  whole.run(device);
  const { total } = whole;
  const run = new Simulation(remembered);
  run.phase('load');
  run.take({ type: 'checkpoint', checkpoint: { clip: 1, clips: 2, step: 5, steps: 10 } });
  run.pass(device.open);
  // Finished clips are decoded again from their latents; text and image were saved as well.
  run.phase('decode', 0);
  const begin = run.said.at(-1);
  expect(begin?.share).toBeGreaterThan(0.2);
  run.frames(1, 121, device);
  run.phase('load', 1);
  run.pass(device.load);
  run.phase('denoise', 1);
  const { share = 0, left } = run.said.at(-1) ?? {};
  // Five steps without guidance and a decode are left; the compilation of a whole run is spread over its steps.
  const real = 5 * 5 + device.compile + 120 * 0.75;
  expect(Math.abs((left ?? 0) - real)).toBeLessThan(device.compile);
  expect(Math.abs(share - (total - real) / total)).toBeLessThan(0.05);
});

test('finishing early leaves out what will not be made', () => {
  const run = new Simulation(remembered);
  run.start(device);
  run.load(device, 0);
  run.steps(1, 3, device, 0, device.compile);
  run.finishing = true;
  run.look();
  // One step and the decode of this clip.
  expect(Math.abs((run.said.at(-1)?.left ?? 0) - (10 + 121 * 0.75))).toBeLessThan(3);
});

test('a decode in tiles counts with its work', () => {
  const one = { ...work, frames: 121 };
  const run = new Simulation(remembered, one);
  run.estimator.decodeWork = 2;
  run.start(device);
  run.load(device, 0);
  run.steps(1, 10, device, 0, device.compile);
  run.phase('decode');
  const whole = 2 * 121 * (device.decode + device.encode);
  expect(Math.abs((run.said.at(-1)?.left ?? 0) - whole)).toBeLessThan(2);
  for (let frame = 1; frame <= 121; frame++) {
    run.pass(device.decode + device.encode);
    run.take({ type: 'tile', tile: 1, tiles: 2, frame, frames: 121 });
  }
  const half = 121 * (device.decode + device.encode);
  expect(Math.abs((run.said.at(-1)?.left ?? 0) - half)).toBeLessThan(2);
});
