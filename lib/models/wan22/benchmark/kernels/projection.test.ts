import { expect, test } from 'vitest';
import { Scope } from '../../../../gpu';
import { CountingBackend } from '../../../../gpu/counting-backend';
import { completeDevice } from '../../../../gpu/kernels/testing/texts';
import { diskFolder, publicModels } from '../../../../weights/testing/files';
import { passFlops } from '../../../wan/flops';
import { decodeCost, decoderGraphs } from '../../../wan/vae';
import { readModelConfig } from '../../config';
import { caseNames, kernelCases } from './cases';
import type { KernelLine } from './measure';
import { project } from './projection';

const config = await readModelConfig(diskFolder(`${publicModels}wan2.2-ti2v-5b`));

const line = (
  family: KernelLine['family'],
  name: string,
  mode: KernelLine['mode'],
  rate: number | null,
): KernelLine => ({
  family,
  case: name,
  mode,
  rate,
  size: '',
  variant: '',
  key: null,
  flops: 1,
  seconds: null,
  share: null,
  difference: null,
  reason: null,
});

test('kernels of one speed take the time of the counted work', () => {
  const rate = 1e13;
  const [exact, ...others] = project(config, [
    line('linear', caseNames.projection, 'exact', rate),
    line('linear', caseNames.projection, 'exact', rate / 2),
    line('attention', caseNames.self, 'exact', rate),
    line('convolution', caseNames.convolution, 'exact', rate),
    line('linear', caseNames.projection, 'runtime', rate / 10),
  ]);
  const pass = passFlops(config.transformer, 27_280, 512) / rate;
  expect(exact?.passSeconds).toBeCloseTo(pass, 6);
  expect(exact?.fourStepsSeconds).toBeCloseTo(4 * pass, 6);
  expect(exact?.thirtyStepsSeconds).toBeCloseTo(60 * pass, 6);
  const decode =
    decodeCost(decoderGraphs(config.vae, { latentHeight: 44, latentWidth: 80 }), 31).flops / rate;
  expect(exact?.decodeSeconds).toBeCloseTo(decode, 6);
  // The runtime's attention was not measured.
  expect(others).toEqual([]);
});

test('the error of a projection is that of the block that was measured in its mode', () => {
  const rate = 1e12;
  const lines = [
    line('linear', caseNames.projection, 'exact', rate),
    line('attention', caseNames.self, 'exact', rate),
    line('linear', caseNames.projection, 'fast', 2 * rate),
  ];
  const flops = passFlops({ ...config.transformer, num_layers: 1 }, 4096, 512);
  const slower = { median: 2, truest: flops / rate / 0.8 };
  const block = { mode: 'exact', tokens: 4096, flops, seconds: slower, rate: 1 } as const;
  const [exact, fast] = project(config, lines, [block]);
  expect(exact?.error).toBeCloseTo(-0.2, 6);
  expect(fast?.error).toBeNull();
});

test('a mode takes what it lacks from exact, and only that', () => {
  const lines = [
    line('linear', caseNames.projection, 'exact', 1e12),
    line('attention', caseNames.self, 'exact', 1e12),
    line('linear', caseNames.projection, 'fast', 2e12),
    line('attention', caseNames.self, 'fast', null),
  ];
  const [exact, fast] = project(config, lines);
  expect([exact?.mode, fast?.mode]).toEqual(['exact', 'fast']);
  const { passSeconds: slow = 0 } = exact ?? {};
  const attention = 4 * 27_280 * (27_280 + 512) * 3072 * 30 * 1e-12;
  expect(fast?.passSeconds).toBeCloseTo(attention + (slow - attention) / 2, 3);
});

test('cases have the widths of the model', () => {
  const sizes = kernelCases(config, 'full').map(({ size }) => size);
  expect(sizes).toContain('2048×3072×14336, 8 bits');
  expect(sizes).toContain('2 × 128 channels, 2048 queries, 27280 keys');
  expect(sizes).toContain('352×640, 256 channels to as many');
});

test.each(kernelCases(config, 'small'))(
  '$name has jobs of each mode that a device has',
  async (kernelCase) => {
    const counting = new CountingBackend(null);
    const scope = new Scope(counting);
    const compute = { ...counting.compute, ...completeDevice };
    const { before = [], candidates } = kernelCase.prepare(scope, compute);
    const { family } = kernelCase;
    const modes = ['exact', 'matrix', ...(family === 'convolution' ? [] : ['fast'])];
    expect(new Set(candidates.map(({ mode }) => mode))).toEqual(new Set(modes));
    for (const { mode, jobs } of candidates) {
      expect(jobs.at(-1)?.kernel.mode).toBe(mode);
      await counting.compute.dispatch([...before, ...jobs]);
    }
    // Names tell variants of a mode apart.
    const names = candidates.map(({ mode, variant }) => `${mode} ${variant}`);
    expect(names).toEqual([...new Set(names)]);
  },
);
