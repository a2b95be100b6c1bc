import { expect, test } from 'vitest';
import type { LinearVariant } from './choice';
import { defaultChoice, families, kernelSetOf, modeOf, modesOf } from './families';
import type { KernelDevice, KernelFamily, Variant } from './family';
import { integerDots, subgroupSizeControl } from './kernel';
import { linearKernel } from './linear';
import { fastLinearKernel } from './linear-dp4a';
import { fastLinearShape, linearShape } from './linear-family';
import { allKernels, completeDevice, dividingDevice } from './testing/texts';

const all = Object.entries(families) as [string, KernelFamily][];
const variantsOf = (device: KernelDevice) =>
  all.map(([name, family]) => [name, family.variants(device)] as const);

test('a device that has everything has texts of all variants', () => {
  expect(modesOf(completeDevice)).toEqual(['exact', 'fast', 'matrix']);
  for (const [family, variants] of variantsOf(completeDevice)) {
    expect(variants.length, family).toBeGreaterThan(1);
  }
  expect(kernelSetOf(completeDevice)).toMatch(/^\w+$/);
});

test('a device whose integers are no faster than its f32 has no mode of integers', () => {
  const modesAt = (integerDot: number | null) =>
    modesOf({ ...completeDevice, peak: { multiplyAdd: 2e12, integerDot } });
  expect(modesAt(4e12)).toContain('fast');
  for (const slow of [2e12, 0.8e12, null]) expect(modesAt(slow)).toEqual(['exact', 'matrix']);
});

test('a choice computes in its mode while a family of that mode has a variant, and not at all without a family of exact', () => {
  for (const mode of modesOf(completeDevice)) {
    const choice = defaultChoice(completeDevice, mode);
    expect(modeOf(choice)).toBe(mode);
    expect(modeOf({ ...choice, convolution: null })).toBeNull();
  }
  const fast = defaultChoice(completeDevice, 'fast');
  expect(modeOf({ ...fast, fastLinear: null })).toBe('fast');
  expect(modeOf({ ...fast, fastLinear: null, fastAttention: null })).toBe('exact');
});

test('where subgroups divide the registers, variants that they hold come first, in the smallest subgroups', () => {
  const first = (device: KernelDevice) =>
    all.flatMap(([name, family]) => {
      const [variant] = family.variants(device);
      return variant && !name.startsWith('matrix')
        ? [[name, variant.subgroup, family.results(variant)] as const]
        : [];
    });
  expect(first(dividingDevice)).toEqual([
    ['linear', 8, 64],
    ['attention', 8, 48],
    ['convolution', 8, 32],
    ['fastLinear', 8, 32],
    ['fastAttention', 8, 48],
  ]);
  // A browser without the feature, or a device that was refused it: the compiler takes 16.
  expect(first({ ...dividingDevice, features: completeDevice.features })).toEqual([
    ['linear', undefined, 16],
    ['attention', undefined, 48],
    ['convolution', undefined, 16],
    ['fastLinear', undefined, 16],
    ['fastAttention', undefined, 48],
  ]);
  const { subgroupSizes: _, ...other } = dividingDevice;
  expect(variantsOf(other)).toEqual(variantsOf({ ...other, features: completeDevice.features }));
  const [variant] = families.linear.variants(dividingDevice);
  const { code, needs } = linearKernel(variant as LinearVariant, linearShape('small'));
  expect(code).toContain('@subgroup_size(8) @workgroup_size(256)');
  expect(needs).toContain(subgroupSizeControl);
});

test('where subgroups divide the registers, kernels of matrices ask for the largest', () => {
  const codesOf = <V extends Variant>(family: KernelFamily<V>, device: KernelDevice) =>
    family.variants(device).map((variant) => family.kernel(variant, 'small').code);
  const codes = (device: KernelDevice) => [
    ...codesOf(families.matrixLinear, device),
    ...codesOf(families.matrixAttention, device),
  ];
  const sized = codes(dividingDevice);
  expect(sized.length).toBeGreaterThan(1);
  expect(sized.filter((code) => !code.includes('@subgroup_size(32) '))).toEqual([]);
  expect(codes(completeDevice).filter((code) => code.includes('@subgroup_size'))).toEqual([]);
});

test('what was measured stays valid when a device is opened with or without its matrices', () => {
  const { features, limits } = completeDevice;
  const kept = [...features].filter((name) => name === 'shader-f16' || name === integerDots);
  const without = { features: new Set(kept), limits };
  expect(modesOf(without)).toEqual(['exact', 'fast']);
  expect(kernelSetOf(without)).toBe(kernelSetOf(completeDevice));
});

// Chromium on Vulkan sets a variable of a function to zero when the function starts, not where a loop declares it.
test('every variable of every kernel has an initial value', { timeout: 120_000 }, () => {
  const kernels = allKernels();
  expect(new Set(kernels.map(({ mode }) => mode))).toEqual(new Set(['exact', 'fast', 'matrix']));
  const variables = /\bvar (\w+)([^;]*);/g;
  const found = kernels.flatMap(({ name, code }) =>
    [...code.matchAll(variables)]
      .filter(([, , rest]) => !rest?.includes('='))
      .map(([, variable]) => `${name}: ${variable}`),
  );
  expect(found).toEqual([]);
});

test('a fast linear that updates y in place has it in f32', () => {
  const [variant] = families.fastLinear.variants(completeDevice);
  if (!variant) throw new Error('there is no variant');
  for (const epilogue of ['added', 'gated'] as const) {
    const shape = { ...fastLinearShape('clamped'), epilogue };
    expect(() => fastLinearKernel(variant, shape)).toThrow(RangeError);
    expect(() => fastLinearKernel(variant, { ...shape, output: 'f32' })).not.toThrow();
  }
});
