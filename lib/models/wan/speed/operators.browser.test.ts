/** @module-tag full */

import { expect, test } from 'vitest';
import { createBackend } from '../../../gpu';
import { measurePeak } from '../../../gpu/kernels/peak';
import { modesOf } from '../../../gpu/kernels/variants';
import { httpFolder } from '../../../weights';
import { readModelConfig } from '../../wan22/config';
import { measureSpeed, type SpeedLine } from '.';
import { measureOperator, operators } from './operators';

test.each(operators)(
  '$name: kernels give the runtime’s numbers on the same operands',
  {
    timeout: 600_000,
  },
  async (operator) => {
    const backend = await createBackend('webgpu');
    const { compute } = backend;
    if (!compute) throw new Error('there is no WebGPU');
    const modes = modesOf(compute);
    const peak = await measurePeak(backend, compute, { rounds: 1 });
    const lines: SpeedLine[] = [];
    const options = { modes, variants: 1, rounds: 1, slow: true, peak };
    await measureOperator(backend, operator, options, (line) => lines.push(line));
    const measured = modes.filter((mode) => operator.families[mode]);
    expect(lines.map(({ mode }) => mode)).toEqual(['runtime', ...measured]);
    for (const { mode, reason, rate, difference, share } of lines) {
      expect(reason).toBeNull();
      expect(rate).toBeGreaterThan(0);
      if (mode === 'runtime') continue;
      // A kernel that writes nothing has another difference.
      expect(difference).toBeGreaterThan(0);
      // No kernel is faster than its arithmetic. An emulated dot product shares operations with its neighbours.
      if (mode === 'exact') expect(share).toBeLessThan(1.1);
    }
    expect(backend.counters().liveBytes).toBe(0);
    await backend.dispose();
  },
);

test('networks of the tiny model are measured by kernels and by the runtime', {
  timeout: 600_000,
}, async () => {
  const folder = httpFolder(new URL('/lib/models/wan22/goldens/model/', location.href));
  const model = { id: 'tiny', config: await readModelConfig(folder) };
  const options = { only: 'block', tokens: 16, rounds: 1 };
  const report = await measureSpeed(
    () => createBackend('webgpu'),
    model,
    options,
    () => undefined,
  );
  expect(report.outcomes).toMatchObject([{ name: 'block', problem: null }]);
  expect(report.lines.map(({ mode }) => mode)).toEqual(['runtime', 'exact']);
});
