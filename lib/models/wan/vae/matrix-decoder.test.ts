/** @module-tag full */
import { expect, test } from 'vitest';
import { relativeRms } from '../../../gpu';
import { families } from '../../../gpu/kernels/families';
import { createDawnBackend } from '../../../gpu/kernels/testing/dawn';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { createVaeDecoder } from './';
import { clipOf, decodeAll, openGoldens } from './testing/goldens';

test('the golden video, decoded on matrix units in both forms', {
  timeout: 900_000,
}, async ({ skip }) => {
  const backend = await createDawnBackend();
  if (typeof backend === 'string') return skip(backend);
  const { compute } = backend;
  if (!compute.matrices) skip('Matrix units need lavapipe of Mesa 26.');
  const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
  const { config, checkpoint, size, tensors } = goldens;
  const matrixConvolution = families.matrixConvolution.variants(compute);
  const windows = matrixConvolution.filter(({ matrix }) => matrix?.window);
  const convolution = { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 };
  for (const variants of [windows, matrixConvolution]) {
    const choice = { mode: 'matrix', linear: null, attention: null, convolution } as const;
    backend.kernels = { ...choice, matrixConvolution: variants.at(-1) ?? null };
    compute.used.clear();
    const decoder = await createVaeDecoder(backend, config, checkpoint, size);
    const error = relativeRms(
      clipOf(await decodeAll(decoder, goldens)),
      await tensors.read('video'),
    );
    console.log(`${variants.at(-1)?.matrix?.window ?? 'run'}: ${error}`);
    // As where the exact kernels decode what is stored in f16.
    expect(error).toBeLessThan(3e-3);
    const keys = [...compute.used];
    expect(keys.some((key) => key.startsWith('matrix convolution'))).toBe(true);
    expect(keys.some((key) => key.includes(' window '))).toBe(variants === windows);
    decoder.dispose();
  }
  backend.dispose();
});
