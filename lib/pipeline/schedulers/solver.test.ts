import { afterAll, describe, expect, test } from 'vitest';
import { nodeBackend } from '../../models/wan22/testing/model';
import { relativeRms } from '../../weights/testing/files';
import { createScheduler } from '.';
import { Solver } from './solver';
import { runSchedulerStep, startScheduler } from './testing';

const backend = nodeBackend();
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
      const solver = new Solver(backend, scheduler, guidance, noise, width);
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

test('without guidance there is no second branch, and no step takes memory', async () => {
  const scheduler = createScheduler({ kind: 'unipc', steps: 4, flowShift: 5 });
  const solver = new Solver(backend, scheduler, 1, values(0), width);
  expect(solver.unconditional).toBeNull();
  const { allocations } = backend.counters();
  for (let step = 0; step < 4; step++) await solver.step(step);
  expect(backend.counters().allocations).toBe(allocations);
  solver.dispose();
});
