import { expect, test } from 'vitest';
import type { KernelReport } from '../../models/wan22/benchmark/kernels';
import { reportMarkdown, reportSteps, runSteps, type StepResult } from './gpu-report-steps';

const line = {
  family: 'linear',
  case: 'feed-forward, up',
  size: '128×3072×14336, 8 bits',
  mode: 'exact',
  key: 'k',
  flops: 2e9,
  difference: 2e-4,
  reason: null,
} as const;

const kernels: KernelReport = {
  model: 'wan2.2-ti2v-5b',
  date: '2026-11-23T00:00:00.000Z',
  browser: 'Chrome/156.0.0.0',
  device: {
    outcome: 'ready',
    adapter: { vendor: 'google', architecture: 'swiftshader', device: '', description: '' },
    software: true,
    features: [],
    limits: { maxComputeWorkgroupStorageSize: 16_384, maxStorageBufferBindingSize: 2 ** 27 },
  },
  languageFeatures: ['packed_4x8_integer_dot_product'],
  modes: ['exact', 'fast'],
  refused: ['subgroups'],
  selfTest: [],
  peak: { multiplyAdd: 40e9, integerDot: null },
  tuning: {
    exact: {
      winners: { linear: null, attention: null, convolution: null },
      tried: [{ family: 'linear', key: 'k', name: '64×64', rate: null, reason: 'wrong numbers' }],
    },
    fast: { winners: { fastLinear: null }, tried: [] },
  },
  lines: [
    {
      ...line,
      mode: 'runtime',
      variant: 'ONNX Runtime',
      key: null,
      difference: null,
      seconds: { median: 2, truest: 1.9 },
      rate: 1e9,
      share: 0.025,
    },
    {
      ...line,
      variant: '128×128×8×8 f32',
      seconds: { median: 0.5, truest: 0.4 },
      rate: 4e9,
      share: 0.1,
    },
    { ...line, variant: '64×64 f16', seconds: null, rate: null, share: null, reason: 'no f16' },
  ],
  blocks: [],
  decoder: null,
  projections: [],
};

test('a step that fails stops none; what a device is too slow for or lacks is left out with a sentence', async () => {
  const results: StepResult[] = [];
  await runSteps(
    reportSteps({ all: true }),
    async (result) => void results.push(result),
    async ({ name, command }) => {
      const failed = name.includes('fast');
      const output = command.includes('bench -- kernels') ? kernels : ['stage ok'];
      const reason = failed ? 'Building …\nGPU_UNRELIABLE: wrong numbers.' : '';
      return { name, command, outcome: failed ? 'failed' : 'done', seconds: 3, output, reason };
    },
  );
  const outcomes = results.map(({ outcome }) => outcome);
  const [parity, parts] = [outcomes.slice(1, 5), outcomes.slice(5)];
  expect(parity).toEqual(['done', 'failed', 'left out', 'done']);
  expect(parts).toEqual(['left out', 'left out', 'left out', 'left out']);
  const text = reportMarkdown({ date: kernels.date, kinora: '0', system: 'Linux', steps: results });
  expect(text).toContain('google swiftshader, computed by the CPU');
  expect(text).toContain('Modes: exact, fast. Workgroup memory 16 KiB, binding 128 MiB');
  expect(text).toContain('Used without subgroups: with it the self-test gives wrong numbers.');
  expect(text).toContain('| 128×128×8×8 f32 | exact | 500 | 400 | 4.00 | 10 % | 4.0× | 2.0e-4 |');
  expect(text).toContain('**Check and tuning of our variants, exact**');
  expect(text).toContain('| linear | 64×64 |  | wrong numbers |');
  expect(text).toContain('**Check and tuning of our variants, fast**');
  expect(text).toContain('| 64×64 f16 | exact | no f16 |');
  expect(text).toContain(
    '| Parity of the tiny model, fast | failed | 3 | GPU_UNRELIABLE: wrong numbers. |',
  );
  expect(text).toContain('| Parity of the tiny model, exact | done | 3 | stage ok |');
  expect(text).toContain('| left out |  | This device has no kernels of the mode matrix. |');
  expect(text).toContain('| left out |  | The CPU emulates the GPU');
});

test('sizes that a person chose go to the commands, also where the CPU emulates the GPU', () => {
  const steps = reportSteps({ all: true, layers: '1', tokens: '64', variants: '1', rounds: '3' });
  const commands = steps.map(({ command }) => command);
  expect(commands[0]).toBe('bench -- kernels --tune --variants 1 --rounds 3');
  expect(commands.at(-1)).toMatch(/--kernels runtime --layers 1 --tokens 64$/);
  expect(steps.some(({ tooSlow }) => tooSlow)).toBe(false);
});

test('unless everything is asked for, the report takes three minutes at most', () => {
  const steps = reportSteps({});
  expect(steps.reduce((sum, { limitMinutes }) => sum + limitMinutes, 0)).toBe(3);
  const [first, second, ...others] = steps;
  expect(first?.command).toBe('bench -- kernels --variants 1 --rounds 2');
  expect(second?.command).toMatch(/^bench -- model .* --kernels exact --layers 1$/);
  expect(others).toEqual([]);
  expect(reportSteps({ rounds: '5' })[0]?.command).toMatch(/ --variants 1 --rounds 5$/);
  expect(reportSteps({ all: true }).length).toBe(9);
});

test('steps run the commands, in processes of their own; what is known of one that fails is kept', {
  tags: ['full'],
  timeout: 300_000,
}, async () => {
  const model = 'bench -- model --synthetic mini --layers 1 --tokens 4';
  const parity = 'parity -- lib/finishing/goldens/tiny-realesr';
  const results: StepResult[] = [];
  await runSteps(
    [
      // On the CPU, whose kernels need no compiling; the browser's commands have tests of their own.
      { name: 'Blocks', command: model, figures: 'file', limitMinutes: 4 },
      { name: 'Parity', command: parity, figures: 'lines', limitMinutes: 4 },
      { name: 'Refused', command: 'parity -- nowhere', figures: 'lines', limitMinutes: 1 },
      { name: 'Broken', command: `${model} --level 9`, figures: 'file', limitMinutes: 4 },
      { name: 'Late', command: 'parity --', figures: 'lines', limitMinutes: 0.001 },
    ],
    async (result) => void results.push(result),
  );
  expect(results.map(({ outcome }) => outcome)).toEqual([
    ...['done', 'done'],
    ...['failed', 'failed', 'out of time'],
  ]);
  const [blocks, small, refused, broken, late] = results;
  expect(blocks?.output).toMatchObject({ stages: expect.anything(), plans: expect.anything() });
  expect(small?.output).toContainEqual(expect.stringMatching(/^\d+ passed, 0 failed$/));
  expect(refused?.reason).toContain('./nowhere has no golden.json.');
  expect(broken?.reason).toContain('the VAE has no level 9');
  expect(broken?.output).toMatchObject({
    stages: expect.arrayContaining([expect.objectContaining({ stage: 'transformer block' })]),
  });
  expect(late?.reason).toBe('It was ended after 0.001 min; the figures are those until then.');
  const text = reportMarkdown({ date: kernels.date, kinora: '0', system: 'Linux', steps: results });
  expect(text).toMatch(/\| transformer block \| [1-3] \| [\d.]+ \| [\d.]+ \| [\d.e-]+ \|/);
  expect(text).toContain('The device is not known.');
});
