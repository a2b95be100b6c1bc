import { expect, test } from 'vitest';
import { modelFamilies } from '../models';
import { latentSizeOf } from '../pipeline/latents';
import { diskFolder, publicModels } from '../weights/testing/files';
import { storedShapes } from './checker-weights';
import { checkCost, defaultArchitecture, squareFlops } from './testing/synthetic';

const native = { width: 1280, height: 704, frames: 121 };

test('the default checker is the published network, of 4.7 GMAC a square', () => {
  const parameters = [...storedShapes('timm', defaultArchitecture).values()]
    .map((dims) => dims.reduce((product, size) => product * size, 1))
    .reduce((sum, count) => sum + count, 0);
  expect(parameters).toBe(5_597_762);
  expect(squareFlops(defaultArchitecture) / 2e9).toBeCloseTo(4.7, 1);
});

test('a check adds far less than 2 % to a standard run of the 5B, and 3 % to the fewest steps', async () => {
  const configuration = diskFolder(`${publicModels}wan2.2-ti2v-5b`);
  const counts = await modelFamilies.wan22.count('int8', configuration);
  const computed = counts.computation(latentSizeOf(counts.latents, native), 'full');
  const pass = computed.pass.flops;
  const { squares, flop, bytes } = checkCost(native);
  expect([squares, bytes]).toEqual([32, 32 * 442_368]);
  expect(flop / 1e12).toBeCloseTo(0.3, 1);
  expect(flop / (30 * 2 * pass)).toBeLessThan(0.00001);
  expect(flop / (3 * pass)).toBeLessThan(0.0002);
});
