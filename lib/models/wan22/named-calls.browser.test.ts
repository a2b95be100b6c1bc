/** @module-tag full */

import { expect, test } from 'vitest';
import { type Backend, CountingBackend, createBackend } from '../../gpu';
import type { ParityLine } from '../../pipeline/parity';
import { httpFolder, openCheckpoint } from '../../weights';
import { openGolden } from './parity/golden';
import { stages } from './parity/stages';
import { parityContext } from './testing/parity';
import { createVaeDecoder } from './vae';
import { collect } from './vae/testing';

/** Answers no call: graphs then run part by part. */
const noKernels = { choice: null, run: async () => false };

test('graphs that run part by part agree with the goldens on WebGPU, within the counted memory', async () => {
  const golden = await openGolden(httpFolder(new URL('/lib/models/wan22/goldens/', location.href)));
  const backend = await createBackend('webgpu');
  backend.kernels = noKernels;
  const context = parityContext(golden, backend);
  const lines: ParityLine[] = [];
  const checked = ['text', 'image latent', 'transformer', 'video'];
  for (const stage of stages.filter(({ name }) => checked.includes(name))) {
    for await (const line of stage.run(context)) lines.push(line);
  }
  expect(lines.filter(({ ok }) => !ok)).toEqual([]);
  expect(lines.length).toBeGreaterThan(6);

  const { vae } = golden.config;
  const checkpoint = await openCheckpoint(golden.model, 'vae');
  const latents = [0, 1].map(() => new Float32Array(vae.z_dim * 4 * 6));
  const decode = async (on: Backend) => {
    await on.releaseSessions();
    on.resetPeaks();
    const decoder = await createVaeDecoder(on, vae, checkpoint, {
      latentHeight: 4,
      latentWidth: 6,
    });
    await collect(decoder.decodeClip(latents));
    decoder.dispose();
    return on.peakBytes;
  };
  const counting = new CountingBackend();
  counting.kernels = noKernels;
  const [taken, counted] = [await decode(backend), await decode(counting)];
  console.log({ taken, counted });
  expect(taken).toBeLessThanOrEqual(counted);
  await backend.dispose();
});
