import * as ort from 'onnxruntime-web';
import { afterAll, describe, expect, test } from 'vitest';
import { at } from '../../contract';
import { type Runtime, relativeRms, WasmBackend } from '../../gpu';
import { createScheduler } from '.';
import { Solver, type SolverState } from './solver';
import { heun } from './testing/heun';
import { runSchedulerStep, startScheduler } from './testing/reference';

// The package's entry for Node has the same surface as the browser's.
const backend = new WasmBackend(() => ort as unknown as Runtime);
afterAll(() => backend.dispose());

const [rows, width] = [7, 3] as const;
const count = rows * width;
const values = (seed: number) =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(78.233 * (i + 1) + seed));

describe.each(['unipc', 'euler'] as const)('%s', (kind) => {
  test.each([1, 3.5])('steps on the device are the plain ones, guidance %s', async (guidance) => {
    for (const steps of [1, 2, 3, 6]) {
      const scheduler = createScheduler({ kind, steps, flowShift: 5 });
      const noise = values(0);
      const solver = await Solver.open(backend, scheduler, guidance, noise, width);
      const state = startScheduler(scheduler, noise);
      for (let step = 0; step < steps; step++) {
        const conditional = values(10 + step);
        const unconditional = values(20 + step);
        backend.write(solver.conditional, conditional);
        if (solver.unconditional) backend.write(solver.unconditional, unconditional);
        await solver.apply(at(scheduler.step(step), 0));
        const velocity =
          guidance === 1
            ? conditional
            : conditional.map((c, i) => {
                const u = unconditional[i] ?? 0;
                return u + guidance * (c - u);
              });
        const next = runSchedulerStep(state, velocity);
        expect(relativeRms(await backend.read(solver.sample), next)).toBeLessThan(1e-5);
        const clean = state.previous ?? [];
        expect(relativeRms(await backend.read(solver.prediction), clean)).toBeLessThan(1e-5);
      }
      // The last step ends at the clean prediction.
      expect(await backend.read(solver.sample)).toEqual(await backend.read(solver.prediction));
      solver.dispose();
    }
    expect(backend.counters().liveBytes).toBe(0);
  });
});

test('without guidance there is no second branch, and no step but the first takes memory', async () => {
  const scheduler = createScheduler({ kind: 'unipc', steps: 4, flowShift: 5 });
  const solver = await Solver.open(backend, scheduler, 1, values(0), width);
  expect(solver.unconditional).toBeNull();
  await solver.apply(at(scheduler.step(0), 0));
  const { allocations } = backend.counters();
  for (let step = 1; step < 4; step++) await solver.apply(at(scheduler.step(step), 0));
  expect(backend.counters().allocations).toBe(allocations);
  solver.dispose();
});

/** The sampler of few steps, in double precision: predict the clean latents, then add fresh noise. */
function fewStepReference(
  timesteps: readonly number[],
  start: Float32Array,
  velocity: (step: number) => Float32Array,
  noise: (step: number) => Float32Array,
): number[] {
  let x = [...start];
  for (const [step, t] of timesteps.entries()) {
    const v = velocity(step);
    const clean = x.map((value, i) => value - (t / 1000) * (v[i] ?? Number.NaN));
    const next = (timesteps[step + 1] ?? 0) / 1000;
    if (next === 0) return clean;
    const fresh = noise(step);
    x = clean.map((value, i) => (1 - next) * value + next * (fresh[i] ?? Number.NaN));
  }
  return x;
}

describe('few steps', () => {
  const timesteps = [1000, 757, 522];
  const scheduler = createScheduler({ kind: 'few-step', steps: 3, flowShift: 5, timesteps });

  test.each([1, 3.5])('on the device are the plain ones, guidance %s', async (guidance) => {
    const solver = await Solver.open(backend, scheduler, guidance, values(0), width);
    const velocity = (step: number) =>
      values(10 + step).map((c, i) => {
        const u = values(20 + step)[i] ?? Number.NaN;
        return guidance === 1 ? c : u + guidance * (c - u);
      });
    let allocations = 0;
    for (let step = 0; step < 3; step++) {
      backend.write(solver.conditional, values(10 + step));
      if (solver.unconditional) backend.write(solver.unconditional, values(20 + step));
      expect(at(scheduler.step(step), 0).predict.noise !== 0).toBe(step < 2);
      await solver.apply(at(scheduler.step(step), 0), values(30 + step));
      if (step === 0) ({ allocations } = backend.counters());
    }
    expect(backend.counters().allocations).toBe(allocations);
    const expected = fewStepReference(timesteps, values(0), velocity, (step) => values(30 + step));
    expect(relativeRms(await backend.read(solver.sample), expected)).toBeLessThan(1e-6);
    expect(relativeRms(await backend.read(solver.prediction), expected)).toBeLessThan(1e-6);
    solver.dispose();
    expect(backend.counters().liveBytes).toBe(0);
  });

  test('a step without its noise is an error, and a resumed run gives the same bits', async () => {
    const run = async (from: SolverState | null) => {
      const solver = await Solver.open(backend, scheduler, 1, from ?? values(0), width);
      let saved = from;
      for (let step = from?.step ?? 0; step < 3; step++) {
        backend.write(solver.conditional, values(10 + step));
        await solver.apply(at(scheduler.step(step), 0), step < 2 ? values(30 + step) : undefined);
        await backend.read(solver.prediction);
        solver.commit(step + 1);
        if (step === 0) saved = await solver.save();
      }
      const result = await backend.read(solver.sample);
      solver.dispose();
      return { saved, result };
    };
    const whole = await run(null);
    expect((await run(whole.saved)).result).toEqual(whole.result);
    const solver = await Solver.open(backend, scheduler, 1, values(0), width);
    const first = solver.apply(at(scheduler.step(0), 0));
    await expect(first).rejects.toThrow('needs noise');
    solver.dispose();
  });
});

describe('a sampler that evaluates the model twice a step', () => {
  const velocity = (x: number, sigma: number) => Math.sin(3 * x) + sigma;
  const scheduler = heun.schedule({ steps: 4, flowShift: 3 });
  const evaluate = async (solver: Solver, sigma: number) => {
    const x = await backend.read(solver.sample);
    backend.write(
      solver.conditional,
      x.map((value) => velocity(value, sigma)),
    );
  };

  test('gives Heun’s steps in double precision, and no step but the first takes memory', async () => {
    const solver = await Solver.open(backend, scheduler, 1, values(0), width);
    const x = [...values(0)];
    let allocations = 0;
    for (let step = 0; step < 4; step++) {
      const [s = 0, t = 0] = scheduler.sigmas.subarray(step);
      for (const [k, from] of x.entries()) {
        const v = velocity(from, s);
        const end = from + (t - s) * v;
        x[k] = t === 0 ? end : from + ((t - s) * (v + velocity(end, t))) / 2;
      }
      const evaluations = scheduler.step(step);
      expect(evaluations).toHaveLength(step < 3 ? 2 : 1);
      for (const evaluation of evaluations) {
        await evaluate(solver, evaluation.sigma);
        await solver.apply(evaluation);
      }
      expect(relativeRms(await backend.read(solver.sample), x)).toBeLessThan(1e-5);
      solver.commit(step + 1);
      if (step === 0) ({ allocations } = backend.counters());
    }
    expect(backend.counters().allocations).toBe(allocations);
    solver.dispose();
    expect(backend.counters().liveBytes).toBe(0);
  });

  test.each([2, 3, 4])(
    'the state before a step stays until its %i evaluations are computed',
    async (count) => {
      const twice = { ...scheduler, evaluations: count };
      const solver = await Solver.open(backend, twice, 1, values(0), width);
      for (const evaluation of scheduler.step(0)) {
        await evaluate(solver, evaluation.sigma);
        await solver.apply(evaluation);
      }
      solver.commit(1);
      const saved = await solver.save();
      const [first, second] = scheduler.step(1);
      if (!first || !second) throw new Error('a step has one evaluation');
      for (const evaluation of [first, ...Array.from({ length: count - 1 }, () => second)]) {
        await evaluate(solver, evaluation.sigma);
        await solver.apply(evaluation);
        expect(await solver.save()).toEqual(saved);
      }
      solver.dispose();
    },
  );
});
