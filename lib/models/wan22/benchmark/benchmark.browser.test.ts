/** @module-tag full */

import { expect, test } from 'vitest';
import { createBackend } from '../../../gpu';
import { assignKernels } from '../../../gpu/kernels/assign';
import { benchmarkModel } from '../../../pipeline/benchmark';
import { httpFolder } from '../../../weights';
import { wanBenchmarkStages } from '../../wan/benchmark/stages';
import { readModelConfig } from '../config';

const folder = httpFolder(new URL('/lib/models/wan22/goldens/model/', location.href));

test.each([
  ['exact', 1],
  ['runtime', 0],
] as const)(
  'kernels %s: every stage of the tiny model is measured on a GPU, with level %i of the decoder',
  {
    timeout: 600_000,
  },
  async (kernels, level) => {
    const config = await readModelConfig(folder);
    const backend = await createBackend('webgpu');
    await assignKernels(backend, kernels);
    const options = {
      layers: 1,
      tokens: 16,
      textTokens: 12,
      precision: 'int8',
      passes: 1,
    } as const;
    const results = await benchmarkModel(
      backend,
      wanBenchmarkStages(config, { ...options, level, maxChunkTokens: 64, kernels }),
      () => undefined,
    );
    const stages = results.map(({ stage }) => stage);
    expect(stages).toContain('transformer block');
    expect(stages.slice(-2)).toEqual(['text-encoder-layer', `VAE up block ${level}, 2×4`]);
    for (const { stage, seconds } of results.filter(({ stage }) => stage !== 'copy')) {
      expect([stage, seconds > 0]).toEqual([stage, true]);
    }
    const [decoder] = results.slice(-1);
    const used = [...(backend.compute?.used ?? [])];
    expect(used.some((key) => key.includes('convolution'))).toBe(kernels === 'exact');
    expect(decoder?.weightBytes).toBeGreaterThan(0);
    expect(backend.counters().liveBytes).toBe(0);
    await backend.dispose();
  },
);
