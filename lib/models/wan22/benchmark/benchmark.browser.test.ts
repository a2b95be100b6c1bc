/** @module-tag full */

import { expect, test } from 'vitest';
import { createBackend } from '../../../gpu';
import { benchmarkModel } from '../../../pipeline/benchmark';
import { httpFolder } from '../../../weights';
import { readModelConfig } from '../config';
import { wan22BenchmarkStages } from './stages';

test('the benchmark runs on the GPU and leaves nothing behind', async () => {
  const config = await readModelConfig(
    httpFolder(new URL('/lib/models/wan22/goldens/model/', location.href)),
  );
  const backend = await createBackend('webgpu');
  const results = await benchmarkModel(
    backend,
    wan22BenchmarkStages(config, {
      layers: 1,
      tokens: 64,
      textTokens: 16,
      latent: { height: 4, width: 6 },
      level: 0,
      precision: 'int8',
      passes: 1,
      maxChunkTokens: 64,
    }),
    () => undefined,
  );
  expect(results.length).toBe(6);
  for (const { seconds, flopPerSecond } of results) {
    expect(seconds).toBeGreaterThan(0);
    expect(flopPerSecond).toBeLessThan(1e15);
  }
  const { categories, liveBytes } = backend.counters();
  expect(liveBytes).toBe(categories.runtime?.live);
  await backend.dispose();
});
