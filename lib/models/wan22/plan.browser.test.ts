/** @module-tag full */

import { expect, test } from 'vitest';
import { parseManifest } from '../../contract';
import { createBackend } from '../../gpu';
import { longestClip } from '../../pipeline/memory/plan';
import { createScheduler } from '../../pipeline/schedulers';
import { httpFolder, openCheckpoint } from '../../weights';
import { readModelConfig } from './config';
import { planWan22 } from './plan';
import { denoiseTokens } from './testing/denoise';
import { Transformer } from './transformer';

test('the plan of the denoising stage is what the counters of a real run show', async () => {
  const manifest = parseManifest(await (await fetch('/models/tiny.json')).json());
  const folder = httpFolder(new URL('/lib/models/wan22/goldens/model/', location.href));
  const config = await readModelConfig(folder);
  const { width, height } = manifest.nativeSizes['1280*720'];
  const planner = await planWan22(config, manifest.precision, {
    native: longestClip(manifest, '1280*720', 9),
  });
  const plan = planner.full;
  const planned = plan.stages.find(({ stage }) => stage === 'denoise');

  const backend = await createBackend('webgpu');
  const checkpoint = await openCheckpoint(folder, 'transformer');
  const model = await Transformer.load(backend, checkpoint, config.transformer, {
    precision: manifest.precision,
  });
  const size = { frames: 3, height: height / 16, width: width / 16 };
  const values = config.transformer.in_channels * size.height * size.width;
  const embeds = new Float32Array(512 * config.transformer.text_dim);
  await denoiseTokens(backend, model, {
    size,
    conditioning: new Float32Array(values),
    noise: new Float32Array(values * size.frames),
    scheduler: createScheduler({ kind: 'unipc', steps: 2, flowShift: 5 }),
    guidanceScale: 5,
    prompt: embeds,
    negativePrompt: embeds,
    maxChunkTokens: plan.chunkTokens,
  });
  const { categories } = backend.counters();
  const peak = (name: string) => categories[name]?.peak ?? 0;
  const ours = peak('activations') + peak('latents');
  console.log('planned', planned, 'measured', {
    weights: peak('weights'),
    ours,
    runtime: peak('runtime'),
  });
  // Buffers are rounded up to 16 bytes; the scalars of the solver show it at this size.
  expect(Math.abs((planned?.weights ?? 0) / peak('weights') - 1)).toBeLessThan(0.01);
  expect(Math.abs((planned?.activations ?? 0) / ours - 1)).toBeLessThan(0.01);
  // The runtime's part is simulated, and never too small. It reuses more than the simulation lets it.
  const ratio = (planned?.runtime ?? 0) / peak('runtime');
  expect(ratio).toBeGreaterThanOrEqual(1);
  expect(ratio).toBeLessThan(3);
  expect(backend.peakBytes).toBeLessThanOrEqual(planned?.peak ?? 0);
  model.dispose();
  await backend.dispose();
});
