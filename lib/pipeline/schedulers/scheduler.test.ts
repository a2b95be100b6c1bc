import { describe, expect, test } from 'vitest';
import { at } from '../../contract';
import { relativeRms } from '../../gpu';
import { openGolden } from '../../weights/testing/files';
import { createScheduler, type Evaluation } from '.';
import { runSchedulerStep, startScheduler } from './testing/reference';

/** The evaluation of a step that has one. */
function only(evaluations: readonly Evaluation[]): Evaluation {
  expect(evaluations).toHaveLength(1);
  return at(evaluations, 0);
}

describe('sigmas', () => {
  // The latents of the golden schedule are a stage of the parity check.
  test('and timesteps are those of the goldens', async () => {
    const golden = await openGolden('golden.safetensors');
    const scheduler = createScheduler({ kind: 'unipc', steps: 6, flowShift: 5 });
    expect(Float32Array.from(scheduler.sigmas)).toEqual(await golden.read('sigmas'));
    expect(Float32Array.from(scheduler.timesteps)).toEqual(await golden.read('timesteps'));
  });

  // As diffusers 0.37 prints them for this model's configuration.
  test.each([
    [
      30,
      [
        999, 993, 985, 978, 970, 961, 952, 942, 932, 921, 909, 896, 882, 867, 851, 833, 814, 793,
        769, 743, 714, 682, 646, 604, 556, 501, 436, 359, 266, 150,
      ],
    ],
    [
      20,
      [
        999, 989, 978, 965, 952, 937, 921, 902, 882, 859, 833, 803, 769, 729, 682, 625, 556, 470,
        359, 211,
      ],
    ],
  ])('timesteps of %i steps are those of diffusers', (steps, timesteps) => {
    expect(createScheduler({ kind: 'unipc', steps, flowShift: 5 }).timesteps).toEqual(timesteps);
  });

  test('fall from just below 1 to 0 for every number of steps and shift', () => {
    for (const steps of [1, 2, 3, 4, 7, 40]) {
      for (const flowShift of [1, 3, 5, 10]) {
        const { sigmas } = createScheduler({ kind: 'euler', steps, flowShift });
        expect(sigmas).toHaveLength(steps + 1);
        expect(sigmas[0]).toBe(Math.fround(0.999_999));
        expect(sigmas.at(-1)).toBe(0);
        for (let i = 0; i < steps; i++) expect(sigmas[i]).toBeGreaterThan(sigmas[i + 1] ?? 1);
      }
    }
  });
});

describe.each(['unipc', 'euler'] as const)('%s', (kind) => {
  test('every coefficient is finite, and the last step ends at the clean prediction', () => {
    for (const steps of [1, 2, 3, 40]) {
      const scheduler = createScheduler({ kind, steps, flowShift: 5 });
      for (let i = 0; i < steps; i++) {
        const { sigma, correct, predict } = only(scheduler.step(i));
        const numbers = [sigma, ...Object.values(correct ?? {}), ...Object.values(predict)];
        expect(numbers.every(Number.isFinite)).toBe(true);
        // A state that is the same everywhere stays so: coefficients add up to 1.
        expect(predict.sample + predict.current + predict.previous).toBeCloseTo(1, 12);
        if (correct) {
          const sum = correct.last + correct.current + correct.previous + correct.beforePrevious;
          expect(sum).toBeCloseTo(1, 12);
        }
      }
      expect(only(scheduler.step(steps - 1)).predict).toEqual({
        sample: 0,
        current: 1,
        previous: 0,
        noise: 0,
      });
      expect(() => scheduler.step(steps)).toThrow(RangeError);
    }
  });
});

/**
 * UniPC in double precision, in the matrix form of `UniPCMultistepScheduler` (order 2, `bh2`, x0-prediction):
 * R·ρ = b is solved in each corrector, where `samplers/unipc.ts` has the solution in closed form.
 */
function unipcReference(
  sigmas: readonly number[],
  start: number,
  velocity: (x: number, step: number) => number,
): number[] {
  const at = (values: readonly number[], i: number) => values[i] ?? Number.NaN;
  const lambda = (i: number) => Math.log((1 - at(sigmas, i)) / at(sigmas, i));
  const steps = sigmas.length - 1;
  const clean: number[] = [];
  const samples: number[] = [];
  const update = (from: number, to: number, order: number, x: number, corrected?: number) => {
    const alpha = 1 - at(sigmas, to);
    const h = lambda(to) - lambda(from);
    const phi1 = at(sigmas, to) === 0 ? -1 : Math.expm1(-h);
    const m0 = at(clean, from);
    const plain = (at(sigmas, to) / at(sigmas, from)) * x - alpha * phi1 * m0;
    const r = order === 2 ? (lambda(from - 1) - lambda(from)) / h : Number.NaN;
    const d1 = order === 2 ? (at(clean, from - 1) - m0) / r : 0;
    if (corrected === undefined) return plain - alpha * phi1 * (order === 2 ? d1 / 2 : 0);
    const change = corrected - m0;
    if (order === 1) return plain - alpha * phi1 * (change / 2);
    const phi2 = phi1 / -h - 1;
    const b = [phi2 / phi1, (2 * (phi2 / -h - 1 / 2)) / phi1];
    // [1 1; r 1]·[ρ0 ρ1] = b
    const rho0 = (at(b, 0) - at(b, 1)) / (1 - r);
    const rho1 = at(b, 0) - rho0;
    return plain - alpha * phi1 * (rho0 * d1 + rho1 * change);
  };
  let x = start;
  const predictions: number[] = [];
  for (let i = 0; i < steps; i++) {
    const m = x - at(sigmas, i) * velocity(x, i);
    if (i > 0) x = update(i - 1, i, i > 1 ? 2 : 1, at(samples, i - 1), m);
    clean.push(m);
    samples.push(x);
    x = update(i, i + 1, i > 0 && i < steps - 1 ? 2 : 1, x);
    predictions.push(x);
  }
  return predictions;
}

test.each([1, 2, 4, 8, 30, [999.8, 937.265, 833.055, 624.687]])(
  'UniPC in %j steps is the library’s matrix form',
  (given) => {
    const listed = typeof given === 'number' ? undefined : given;
    const steps = typeof given === 'number' ? given : given.length;
    const scheduler = createScheduler({ kind: 'unipc', steps, flowShift: 5, timesteps: listed });
    const velocity = (x: number, step: number) => Math.sin(2 * x) + x / (step + 1);
    const expected = unipcReference([...scheduler.sigmas], 0.7, velocity);
    const state = startScheduler(scheduler, Float32Array.from([0.7]));
    const actual = expected.map((_, step) => {
      const v = velocity(state.sample[0] ?? Number.NaN, step);
      return runSchedulerStep(state, Float32Array.from([v]))[0] ?? Number.NaN;
    });
    expect(relativeRms(actual, expected)).toBeLessThan(1e-5);
  },
);

describe('a list of timesteps', () => {
  const warped = [1000, 937.5, 833.25, 625];

  test('gives the timesteps and the noise levels', () => {
    for (const kind of ['euler', 'few-step'] as const) {
      const options = { kind, steps: 4, flowShift: 1, timesteps: warped };
      const { steps, sigmas, timesteps } = createScheduler(options);
      expect(steps).toBe(4);
      expect(timesteps).toEqual(warped);
      expect([...sigmas]).toEqual([...warped.map((t) => Math.fround(t / 1000)), 0]);
    }
  });

  test('Euler steps at it are those of the flow, in double precision', () => {
    const scheduler = createScheduler({
      kind: 'euler',
      steps: 4,
      flowShift: 1,
      timesteps: warped,
    });
    const velocity = (x: number, sigma: number) => Math.sin(3 * x) + sigma;
    const state = startScheduler(scheduler, Float32Array.from([0.7]));
    let x = 0.7;
    for (let i = 0; i < 4; i++) {
      const sigma = (warped[i] ?? Number.NaN) / 1000;
      runSchedulerStep(state, Float32Array.from([velocity(state.sample[0] ?? Number.NaN, sigma)]));
      x += ((warped[i + 1] ?? 0) / 1000 - sigma) * velocity(x, sigma);
      expect(only(scheduler.step(i)).correct).toBeNull();
    }
    expect(state.sample[0]).toBeCloseTo(x, 5);
  });

  test('only the sampler of few steps is stochastic, and it needs one', () => {
    const options = { steps: 4, flowShift: 5 };
    expect(createScheduler({ kind: 'unipc', ...options }).stochastic).toBe(false);
    expect(createScheduler({ kind: 'euler', ...options }).stochastic).toBe(false);
    const timesteps = [1000, 500];
    const scheduler = createScheduler({ kind: 'few-step', ...options, timesteps });
    expect(scheduler.stochastic).toBe(true);
    expect(only(scheduler.step(0)).predict).toEqual({
      sample: 0,
      current: 0.5,
      previous: 0,
      noise: 0.5,
    });
    expect(only(scheduler.step(1)).predict).toEqual({
      sample: 0,
      current: 1,
      previous: 0,
      noise: 0,
    });
  });

  test.each([[[500, 500]], [[0]], [[1001]], [[400, 500]]])('%j is refused', (timesteps) => {
    const options = { kind: 'euler', steps: 1, flowShift: 5, timesteps } as const;
    expect(() => createScheduler(options)).toThrow(RangeError);
  });
});

test.each([
  ['of another version', { kind: 'dpm' }, 'names the sampler "dpm", which this version does not'],
  ['of few steps without a list', { kind: 'few-step' }, '"few-step" needs a list of timesteps'],
])('a sampler %s is refused', (_, options, why) => {
  const create = () => createScheduler({ steps: 1, flowShift: 5, ...options });
  expect(create).toThrow(expect.objectContaining({ code: 'MODEL_MANIFEST_INVALID' }));
  expect(create).toThrow(why);
});

test('refuses bad options and velocities of another length', () => {
  for (const steps of [0, -1, 1.5]) {
    expect(() => createScheduler({ kind: 'unipc', steps, flowShift: 5 })).toThrow(RangeError);
  }
  for (const flowShift of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => createScheduler({ kind: 'unipc', steps: 4, flowShift })).toThrow(RangeError);
  }
  const scheduler = createScheduler({ kind: 'unipc', steps: 4, flowShift: 5 });
  const state = startScheduler(scheduler, new Float32Array(4));
  expect(() => runSchedulerStep(state, new Float32Array(3))).toThrow(TypeError);
});
