/** @module-tag full */

import { expect, test } from 'vitest';
import { createBackend } from '../../../gpu';
import { httpFolder } from '../../../weights';
import { readModelConfig } from '../model-config';
import { measureSpeed } from '.';
import { operators } from './operators';

const folder = httpFolder(new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', location.href));
const tiny = { id: 'tiny', config: await readModelConfig(folder) };

test('on the same operands kernels give the runtime’s numbers, no faster than their arithmetic', {
  timeout: 900_000,
}, async () => {
  const backend = await createBackend('webgpu');
  const options = { variants: 1, rounds: 1 };
  const { outcomes, lines, modes } = await measureSpeed(
    async () => backend,
    tiny,
    options,
    () => undefined,
  );
  expect(outcomes.map(({ problem }) => problem)).toEqual(outcomes.map(() => null));
  const wrong = lines.filter(({ reason }) => reason !== null);
  expect(wrong).toEqual([]);
  const measured = operators.flatMap(({ name, families }) =>
    ['runtime' as const, ...modes.filter((mode) => families[mode])].map(
      (mode) => `${name} ${mode}`,
    ),
  );
  expect(lines.map(({ measurement, mode }) => `${measurement} ${mode}`)).toEqual(measured);
  for (const { mode, rate, difference, share } of lines) {
    expect(rate).toBeGreaterThan(0);
    if (mode === 'runtime') continue;
    // A kernel that writes nothing has another difference.
    expect(difference).toBeGreaterThan(0);
    // An emulated dot product shares operations with its neighbours.
    if (mode === 'exact') expect(share).toBeLessThan(1.1);
  }
});

test('networks of the tiny model are measured by kernels and by the runtime', {
  timeout: 600_000,
}, async () => {
  const options = { only: 'block', tokens: 16, rounds: 1 };
  const report = await measureSpeed(
    () => createBackend('webgpu'),
    tiny,
    options,
    () => undefined,
  );
  expect(report.outcomes).toMatchObject([{ name: 'block', problem: null }]);
  expect(report.lines.map(({ mode }) => mode)).toEqual(['runtime', 'exact']);
});
