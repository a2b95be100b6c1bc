import { expect, test } from 'vitest';
import { matrixFeature } from '../../contract/kernel-setting';
import { integerDots } from './linear-dp4a';
import { kernelSetOf, modesOf, variantsOf } from './variants';

test('a device that has everything has texts of all variants', () => {
  const device = {
    features: new Set(['shader-f16', 'subgroups', 'subgroup_id', matrixFeature, integerDots]),
    limits: { workgroupBytes: 65_536, threads: 1024, bindingBytes: 2 ** 31 },
    matrices: { configs: [{ m: 8, n: 8, k: 8 }], subgroupSize: 32 },
  };
  expect(modesOf(device)).toEqual(['exact', 'fast', 'matrix']);
  for (const [family, variants] of Object.entries(variantsOf(device))) {
    expect(variants.length, family).toBeGreaterThan(1);
  }
  expect(kernelSetOf(device)).toMatch(/^\w+$/);
});
