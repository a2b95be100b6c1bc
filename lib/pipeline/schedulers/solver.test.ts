import * as ort from 'onnxruntime-web';
import { afterAll, describe, expect, test } from 'vitest';
import { type Runtime, relativeRms, WasmBackend } from '../../gpu';

import { createScheduler } from '.';
import { Solver, type SolverState } from './solver';
import { runSchedulerStep, startScheduler } from './testing';

// The package's entry for Node has the same surface as the browser's.
const backend = new WasmBackend(ort as unknown as Runtime);
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
        await solver.step(step);
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
  await solver.step(0);
  const { allocations } = backend.counters();
  for (let step = 1; step < 4; step++) await solver.step(step);
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
      expect(solver.wantsNoise(step)).toBe(step < 2);
      await solver.step(step, values(30 + step));
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
        await solver.step(step, solver.wantsNoise(step) ? values(30 + step) : undefined);
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
    await expect(solver.step(0)).rejects.toThrow('Step 0 needs noise.');
    solver.dispose();
  });
});
