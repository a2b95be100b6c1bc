/** @module-tag full */

import { expect, test } from 'vitest';
import { browserRuntime, relativeRms, WebGpuBackend } from '../../../gpu';
import { httpFolder } from '../../../weights';
import { createTiledVaeDecoder, measureDecoder } from './';
import { clipOf, collect, latentsOf, openGoldens, ownBytes } from './testing';

const root = new URL('/lib/models/wan22/goldens/', location.href);

test('the golden video in two tiles on WebGPU takes no more than was planned', async () => {
  const backend = await WebGpuBackend.create(await browserRuntime());
  const goldens = await openGoldens(httpFolder(root), httpFolder(new URL('model/', root)));
  const { config, checkpoint, size, tensors } = goldens;
  backend.resetPeaks();
  const tiles = { rows: 1, columns: 2, overlap: 4 };
  const decoder = await createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles });
  const frames = await collect(decoder.decodeClip(latentsOf(goldens)));
  const error = relativeRms(clipOf(frames), await tensors.read('video'));
  expect(error).toBeLessThan(2e-2);
  expect(ownBytes(backend)).toBe(0);
  const plan = await measureDecoder(config, size, tiles);
  console.log(`${error.toExponential(1)}, ${backend.peakBytes} of ${plan.peak} bytes`);
  expect(backend.peakBytes).toBeLessThanOrEqual(plan.peak);
  await backend.dispose();
});
