import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Scope } from '../backend';
import { relativeRms } from '../self-test';
import type { WebGpuBackend } from '../webgpu-backend';
import type {
  ConvolutionVariant,
  LinearShape,
  LinearVariant,
  MatrixAttentionVariant,
} from './choice';
import type { Compute } from './compute';
import { withoutWindow } from './convolution-matrix';
import { families, modesOf, tunedFamilies } from './families';
import { defineKernel } from './kernel';
import { linearVariants } from './linear';
import { deviceMatrices, matrixTilings } from './linear-matrix';
import { measurePeak } from './peak';
import { attend, expectedOf, randomCall } from './testing/attention';
import { type ConvolutionCase, convolved, usual } from './testing/convolution';
import { createDawnBackend } from './testing/dawn';
import { expectedLinear, linearOperands, runLinear } from './testing/linear';

describe('kernels on lavapipe, which has features that SwiftShader lacks', {
  tags: ['full'],
}, () => {
  let backend: WebGpuBackend;
  let missing: string | undefined;
  beforeAll(async () => {
    const made = await createDawnBackend();
    if (typeof made === 'string') missing = made;
    else backend = made;
  });
  afterAll(() => backend?.dispose());

  test('f16 arithmetic and integer dot products are there, and compute', async ({ skip }) => {
    if (missing) skip(missing);
    const { compute } = backend;
    expect([...compute.features]).toEqual(
      expect.arrayContaining(['shader-f16', 'packed_4x8_integer_dot_product']),
    );
    const kernel = defineKernel({
      name: 'features',
      mode: 'exact',
      bindings: [{ name: 'y', access: 'write', element: 'f32' }],
      uniforms: [],
      threads: 32,
      workgroupBytes: 0,
      needs: ['shader-f16'],
      directives: 'enable f16;',
      body: `
  let half = f16(thread) * 0.5h;
  y[group * 32u + thread] = f32(half) + f32(dot4I8Packed(0x01ff0102u, thread));`,
    });
    const y = backend.tensor('float32', [64], 'activations');
    await compute.dispatch([{ kernel, operands: { y }, uniforms: {}, groups: 2, flops: 64 }]);
    // A half, and twice the thread's low byte.
    expect([...(await backend.read(y))]).toEqual(
      Array.from({ length: 64 }, (_, i) => 2.5 * (i % 32)),
    );
    y.dispose();
  });

  test('the peak of a device is measured', async ({ skip }) => {
    if (missing) skip(missing);
    const peak = await measurePeak(backend, backend.compute);
    // One core computes a billion multiply-adds per second; nothing that a CPU emulates reaches a million times that.
    expect(peak.multiplyAdd).toBeGreaterThan(1e9);
    expect(peak.multiplyAdd).toBeLessThan(1e13);
    expect(peak.integerDot).toBeGreaterThan(1e9);
  });

  test('matrix units add products of f16 in f32', { timeout: 300_000 }, async ({ skip }) => {
    if (missing) skip(missing);
    const { compute } = backend;
    if (!compute.matrices) skip('Matrix units need lavapipe of Mesa 26.');
    const { configs = [], subgroupSize = 0 } = compute.matrices ?? {};
    expect(subgroupSize).toBe(8);
    expect(configs).toEqual([{ m: 8, n: 8, k: 8 }]);
    expect(modesOf(compute)).toContain('matrix');
    // The smallest: larger ones compile in many minutes.
    const matrix = matrixTilings(compute).at(-1);
    expect(matrix).toMatchObject({ rows: 32, columns: 32 });
    const plain = linearVariants(compute).at(-1) as LinearVariant;
    const variant = { ...plain, ...(matrix && { matrix }) };
    expect(await families.matrixLinear.check({ backend, compute }, variant)).toBeNull();
    // Powers of two scale weights that f16 holds: nothing but the order of the sums is left. Sums in f16 err by a percent.
    const shape: LinearShape = {
      k: 3072,
      n: 40,
      weight: 'q8',
      input: 'f16',
      output: 'f32',
      bias: true,
      rank: 0,
      epilogue: 'none',
    };
    const operands = linearOperands(shape, 37);
    operands.scales.fill(2 ** -6);
    const found = await runLinear(backend, variant, shape, operands, { first: 3 });
    expect(relativeRms(found, expectedLinear(shape, operands))).toBeLessThan(1e-6);
    const part = { first: 3, start: 5, count: 9 };
    expect(await runLinear(backend, variant, shape, operands, part)).toEqual(
      found.slice(5 * 40, 14 * 40),
    );
  });

  // Two threads share a row, as with larger subgroups: those of 8 beyond the parts only help.
  test('attention on matrix units agrees with double precision', {
    timeout: 300_000,
  }, async ({ skip }) => {
    if (missing) skip(missing);
    const [matrices] = deviceMatrices(backend.compute);
    if (!matrices) skip('Matrix units need lavapipe of Mesa 26.');
    const tile = { queries: 64, keys: 32, parts: 4, subgroupSize: 32 };
    const variant = { ...matrices, ...tile } as MatrixAttentionVariant;
    const size = 32;
    const shape = { headSize: size, q: 'f16', kv: 'f16', out: 'f32', bias: 'none' } as const;
    const random = randomCall(77, 333, 2, size);
    const keyOf = (i: number) => Math.floor(i / 2 / size);
    const calls = {
      random,
      // The first reference of a row serves some tiles only, and some rows only.
      rising: { ...random, k: random.k.map((value, i) => 2 * value * (1 + keyOf(i) / 16)) },
      falling: { ...random, k: random.k.map((value, i) => 2 * value * (20 - keyOf(i) / 18)) },
      equal: { ...random, k: random.k.map(() => 3) },
    };
    for (const [name, call] of Object.entries(calls)) {
      const found = await attend(backend, variant, shape, call, { before: 3 });
      const error = relativeRms(found, expectedOf(call, shape));
      expect(error, name).toBeLessThan(name === 'equal' ? 1e-6 : 3e-4);
      const parts = await attend(backend, variant, shape, call, { chunk: 29, headMajor: true });
      expect(parts, name).toEqual(found);
    }
    const few = randomCall(5, 3, 1, size);
    const found = await attend(backend, variant, shape, few);
    expect(relativeRms(found, expectedOf(few, shape))).toBeLessThan(3e-4);
  });

  test('convolutions on matrix units agree with double precision in both forms', {
    timeout: 600_000,
  }, async ({ skip }) => {
    if (missing) skip(missing);
    const { compute } = backend;
    if (!compute.matrices) skip('Matrix units need lavapipe of Mesa 26.');
    const matrixConvolution = families.matrixConvolution.variants(compute);
    const last = matrixConvolution.filter(({ matrix }) => matrix?.window).at(-1);
    expect(last?.matrix).toMatchObject({ rows: 32, columns: 32 });
    // What matrices do not compute, with a tile that compiles fast.
    const small = { pixels: 16, filters: 16, threadPixels: 1, threadFilters: 4 };
    const variant = { ...small, ...(last?.matrix && { matrix: last.matrix }) };
    expect(await families.matrixConvolution.check({ backend, compute }, variant)).toBeNull();
    compute.used.clear();

    const errorsOf = async (change: Partial<ConvolutionCase>) => {
      const given = { ...usual, storage: 'f16', inputs: 40, filters: 72, ...change } as const;
      const limits = { ...compute.limits, bindingBytes: 6000 };
      const scope = new Scope(backend);
      const found = (of: ConvolutionVariant, limited?: Compute['limits']) =>
        convolved({ backend, scope }, given, of, limited);
      const whole = await found(variant);
      const bands = await found(variant, limits);
      expect(bands.values).toEqual(whole.values);
      const run = await found(withoutWindow(variant));
      scope.dispose();
      return [whole, run].map(({ values, expected }) => relativeRms(values, expected));
    };
    const cases: readonly Partial<ConvolutionCase>[] = [
      {},
      // Images in f32 whose numbers f16 holds; a short past.
      { input: 'f32', frames: 2 },
      { residual: 'linear', sideInputs: 24, frames: 1 },
      { residual: 'linear', sideInputs: 24, input: 'f32' },
      { residual: 'repeated', scale: 2, sideInputs: 144, frames: 1 },
      { scale: 2, shuffled: true, activation: 'relu', frames: 1 },
      // Half a tile.
      { filters: 24, activation: 'prelu' },
    ];
    for (const [index, change] of cases.entries()) {
      for (const error of await errorsOf(change)) expect(error, `${index}`).toBeLessThan(1e-6);
    }
    const ofMatrices = () =>
      [...compute.used].filter((key) => key.startsWith('matrix convolution'));
    expect(ofMatrices()).toHaveLength(cases.length * 2 - 1);
    // Channels that are no multiple of 8, few filters, and weights in f32 are left to the exact kernels.
    compute.used.clear();
    for (const change of [{ inputs: 20 }, { filters: 12 }, { storage: 'f32' }] as const) {
      for (const error of await errorsOf(change)) expect(error).toBeLessThan(1e-6);
    }
    expect(ofMatrices()).toEqual([]);
  });

  // Those that need `shader-f16` first: no browser test can run them. Two each, as lavapipe takes a minute to
  // compile a large one.
  test.for(['linear', 'attention'])(
    'variants of %s compute right numbers',
    { timeout: 900_000 },
    async (family, { skip }) => {
      if (missing) skip(missing);
      const { compute } = backend;
      const scope = new Scope(backend);
      const options = { backend, compute, mode: 'exact', timing: false, scope } as const;
      const tuned = tunedFamilies(options).find((other) => other.family === family);
      const half = ({ kernels }: { kernels: readonly { needs: readonly string[] }[] }) =>
        kernels.some(({ needs }) => needs.includes('shader-f16'));
      const candidates = tuned?.candidates.toSorted((a, b) => Number(half(b)) - Number(half(a)));
      for (const candidate of candidates?.slice(0, 2) ?? []) {
        const failures = await compute.compile(candidate.kernels);
        const reason = failures[0]?.reason ?? (await tuned?.check(candidate));
        expect([candidate.name, reason]).toEqual([candidate.name, null]);
      }
      expect(candidates?.length).toBeGreaterThan(1);
      scope.dispose();
    },
  );
});
