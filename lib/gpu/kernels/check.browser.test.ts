import { afterAll, expect, test } from 'vitest';
import { createBackend } from '..';
import { Scope } from '../backend';
import { assignKernels, modeFor } from './assign';
import type { CheckDevice } from './check';
import type { LinearVariant } from './choice';
import { type Dispatch, wholeRows } from './compute';
import { defaultChoice, families, kernelSetOf, tunedFamilies } from './families';
import { bySize, type KernelFamily, type Variant } from './family';
import { linearDispatch } from './linear';
import { linearShape } from './linear-family';
import { type TunedFamily, tune } from './tune';

const backend = await createBackend('webgpu');
afterAll(() => backend.dispose());
if (!backend.compute) throw new Error('the GPU runs no kernels');
const { compute } = backend;
const device: CheckDevice = { backend, compute };

/** The smallest variant compiles fastest. */
const smallest = <V extends Variant>(family: KernelFamily<V>) =>
  bySize(family, family.variants(compute))[0] as V;
const unfused = bySize(
  families.fastLinear,
  families.fastLinear.variants(compute).filter(({ fused }) => !fused),
)[0] as LinearVariant;
/** Smaller than any that is offered. */
const linear: LinearVariant = {
  rows: 16,
  columns: 16,
  threadRows: 1,
  threadColumns: 4,
  shared: 'f32',
};

/** A device on which a kernel is told a smaller size than it has. */
const short = (uniform: string): CheckDevice => ({
  ...device,
  edit: (job: Dispatch) =>
    uniform in job.uniforms
      ? { ...job, uniforms: { ...job.uniforms, [uniform]: (job.uniforms[uniform] ?? 0) - 1 } }
      : job,
});
/** A device whose kernels have another text in a place; `places` counts those that were changed. */
function edited(text: RegExp, replacement: string) {
  const places: string[] = [];
  const edit = (job: Dispatch): Dispatch => {
    const { kernel } = job;
    const code = kernel.code.replace(text, replacement);
    if (code === kernel.code) return job;
    places.push(kernel.name);
    return { ...job, kernel: { ...kernel, code, key: `${kernel.key} ${text}` } };
  };
  return { places, device: { ...device, edit } };
}
const wrong = expect.stringMatching(/^the error is |^a number is not finite$/);

test('a linear variant passes; one that leaves out a row does not', async () => {
  expect(await families.linear.check(device, linear)).toBeNull();
  expect(await families.linear.check(short('rows'), linear)).toEqual(wrong);
});

/** Errors of a text, of the kind that a driver or a changed template makes. */
const epilogueErrors: readonly (readonly [string, RegExp, string])[] = [
  ['the bias', /v \+= bias\[/, 'v += 0.99 * bias['],
  ['GELU', /0\.044715/, '0.04'],
  ['the gate', /fma\(gate\[\(uniforms\.gateFirst/, 'fma(gate[(0u'],
  ['the last columns of a low-rank branch', /r < 3u; r\+\+/, 'r < 2u; r++'],
  ['the count of overflows', /atomicAdd\(&overflows\[0\], 1u\)/, 'atomicAdd(&overflows[0], 2u)'],
  [
    'the clamp to f16',
    /vec4<f32>\(-65504\.0\), vec4<f32>\(65504/,
    'vec4<f32>(-65504.0), vec4<f32>(65000',
  ],
];
const foundWrong = expect.stringMatching(/^the error is |overflows were counted$/);

test.each([
  ...epilogueErrors,
  ['the upper nibble of a byte', /0xF00u, 0xF000u\)/, '0xF00u, 0x7000u)'],
  ['what is added in place', /v \+= y\[at\];/, ''],
] as const)(
  'a linear variant with an error in %s is rejected',
  {
    tags: ['full'],
  },
  async (_, text, by) => {
    const planted = edited(text, by);
    expect(await families.linear.check(planted.device, linear)).toEqual(foundWrong);
    expect(planted.places).not.toEqual([]);
  },
);

// The epilogue is that of the exact kernels.
test.each([
  ['the upper nibble of a byte', /0xf000u\)/, '0x7000u)'],
  ['what is added in place', /, v, y\[at\]\)/, ', v, 0.99 * y[at])'],
] as const)(
  'a fast linear variant with an error in %s is rejected',
  {
    tags: ['full'],
  },
  async (_, text, by) => {
    const planted = edited(text, by);
    expect(await families.fastLinear.check(planted.device, unfused)).toEqual(foundWrong);
    expect(planted.places).not.toEqual([]);
  },
);

test('a convolution that does not add its residual is rejected', { tags: ['full'] }, async () => {
  const planted = edited(/value \+= unpackHalf4\(side/, 'value += 0.99 * unpackHalf4(side');
  const variant = smallest(families.convolution);
  expect(await families.convolution.check(planted.device, variant)).toEqual(wrong);
  expect(planted.places).toHaveLength(1);
});

test('an attention variant passes; one that leaves out a key does not', {
  tags: ['full'],
}, async () => {
  const variant = smallest(families.attention);
  expect(await families.attention.check(device, variant)).toBeNull();
  expect(await families.attention.check(short('keys'), variant)).toEqual(wrong);
});

test('a fast linear variant passes; one that leaves out a row does not', {
  tags: ['full'],
}, async () => {
  expect(await families.fastLinear.check(device, unfused)).toBeNull();
  expect(await families.fastLinear.check(short('rows'), unfused)).toEqual(wrong);
  // SwiftShader's multiply-add rounds the product, too.
  expect(await families.fastLinear.check(device, { ...unfused, fused: true })).toEqual(wrong);
});

test('a fast attention variant passes; one that leaves out a key does not', {
  tags: ['full'],
}, async () => {
  const variant = smallest(families.fastAttention);
  expect(await families.fastAttention.check(device, variant)).toBeNull();
  expect(await families.fastAttention.check(short('keys'), variant)).toEqual(wrong);
});

test('a convolution variant passes; one that leaves out a pixel does not', {
  tags: ['full'],
}, async () => {
  const variant = smallest(families.convolution);
  expect(await families.convolution.check(device, variant)).toBeNull();
  expect(await families.convolution.check(short('pixels'), variant)).toEqual(wrong);
});

test('two variants are measured, and one wins', { tags: ['full'], timeout: 300_000 }, async () => {
  const scope = new Scope(backend);
  const [family] = tunedFamilies({ backend, compute, scope, mode: 'exact', timing: false });
  if (!family) throw new Error('there is no family');
  // The timed work of the tuner takes minutes here: a small one in its place.
  const [shape, rows] = [linearShape('small'), 64];
  const floats = (count: number) => scope.float32([count], 'activations');
  const operands = {
    rows,
    y: wholeRows(floats(rows * shape.n)),
    bias: floats(shape.n),
    x: wholeRows(scope.tensor('float16', [rows, shape.k], 'activations')),
    values: scope.tensor('uint8', [shape.n * shape.k], 'activations'),
    scales: floats((shape.n * shape.k) / 32),
  };
  const tuned: TunedFamily = {
    ...family,
    candidates: family.candidates.slice(0, 2),
    flops: 2 * rows * shape.n * shape.k,
    run: async ({ variant }, _share, times) => {
      const job = linearDispatch(variant as LinearVariant, shape, operands);
      await compute.dispatch(Array.from({ length: times }, () => job));
      await backend.settle();
    },
  };
  // These compilers are slow, and lavapipe's begins at the first dispatch: they have their time before.
  for (const candidate of tuned.candidates) {
    expect(await compute.compile(candidate.kernels)).toEqual([]);
    expect(await tuned.check(candidate)).toBeNull();
    await tuned.run(candidate, 1, 1);
  }
  const { winners, tried } = await tune({
    families: [tuned],
    timing: true,
    compile: (kernels) => compute.compile(kernels),
  });
  expect(tried.map(({ reason }) => reason)).toEqual([null, null]);
  // Which one is a matter of the machine: the fastest is timed again beside each variant. tune.test.ts has the rule.
  const { key, rate } = winners.linear ?? {};
  expect(tried).toContainEqual(expect.objectContaining({ key, rate }));
  expect(rate).toBeGreaterThan(0);
  scope.dispose();
});

test('a mode of integers is chosen where the peak of integers was measured above that of f32', {
  tags: ['full'],
}, async () => {
  // An emulated GPU is not measured.
  expect(await modeFor(backend, compute, 'fast', true)).toBe('fast');
  expect(compute.peak).toBeNull();
  const mode = await modeFor(backend, compute, 'fast', false);
  const { multiplyAdd, integerDot } = compute.peak ?? {};
  expect(multiplyAdd).toBeGreaterThan(1e8);
  expect(mode).toBe((integerDot ?? 0) > (multiplyAdd ?? 0) ? 'fast' : 'exact');
  compute.peak = { multiplyAdd: 2e12, integerDot: 1e12 };
  expect(await assignKernels(backend, 'fast')).toBe('exact');
  expect(backend.kernels).toMatchObject({ mode: 'exact' });
  compute.peak = { multiplyAdd: 1e12, integerDot: 2e12 };
  expect(await assignKernels(backend, 'fast')).toBe('fast');
  compute.peak = null;
});

test('a choice has the best guess of each family; a device with less gives another set of kernels', () => {
  expect(defaultChoice(compute, 'exact')).toEqual({
    mode: 'exact',
    linear: families.linear.variants(compute)[0],
    attention: families.attention.variants(compute)[0],
    convolution: families.convolution.variants(compute)[0],
  });
  const limits = { workgroupBytes: 16_384, threads: 256, bindingBytes: 2 ** 27, storageBuffers: 8 };
  const least = { features: new Set<string>(), limits };
  expect(families.linear.variants(least).length).toBeGreaterThan(0);
  expect(families.attention.variants(least).length).toBeGreaterThan(0);
  const more = { features: new Set(['shader-f16']), limits: { ...limits, workgroupBytes: 32_768 } };
  expect(kernelSetOf(least)).not.toBe(kernelSetOf(more));
  expect(kernelSetOf(least)).toBe(kernelSetOf(least));
});
