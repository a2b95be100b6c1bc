import { expect, test } from 'vitest';
import type { KernelReport } from '../models/wan22/benchmark/kernels';
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
    limits: {},
  },
  languageFeatures: [],
  selfTest: [],
  peak: { multiplyAdd: 40e9, integerDot: null },
  tuning: {
    winners: { linear: null, attention: null, convolution: null },
    tried: [{ family: 'linear', key: 'k', name: '64×64', rate: null, reason: 'wrong numbers' }],
  },
  lines: [
    {
      ...line,
      mode: 'runtime',
      variant: 'ONNX Runtime',
      key: null,
      difference: null,
      seconds: { median: 2, least: 1.9 },
      rate: 1e9,
      share: 0.025,
    },
    {
      ...line,
      variant: '128×128×8×8 f32',
      seconds: { median: 0.5, least: 0.4 },
      rate: 4e9,
      share: 0.1,
    },
    { ...line, variant: '64×64 f16', seconds: null, rate: null, share: null, reason: 'no f16' },
  ],
  blocks: [],
  projections: [],
};

test('a step that fails stops none; what an emulated GPU is too slow for is left out with a sentence', async () => {
  const results: StepResult[] = [];
  await runSteps(
    reportSteps,
    async (result) => void results.push(result),
    async ({ name, command }) => {
      const failed = name.includes('fast');
      const output = command.includes('kernels --tune') ? kernels : ['stage ok'];
      const reason = failed ? 'GPU_UNRELIABLE: wrong numbers.' : '';
      return { name, command, outcome: failed ? 'failed' : 'done', seconds: 3, output, reason };
    },
  );
  expect(results.map(({ outcome }) => outcome)).toEqual([
    'done',
    'done',
    'done',
    'failed',
    'done',
    'left out',
    'left out',
    'left out',
  ]);
  const text = reportMarkdown({ date: kernels.date, system: 'Linux', steps: results });
  expect(text).toContain('google swiftshader, computed by the CPU');
  expect(text).toContain('| 128×128×8×8 f32 | exact | 500 | 400 | 4.00 | 10 % | 4.0× | 2.0e-4 |');
  expect(text).toContain('| linear | 64×64 |  | wrong numbers |');
  expect(text).toContain('| 64×64 f16 | exact | no f16 |');
  expect(text).toContain('failed after 3 s. GPU_UNRELIABLE: wrong numbers.');
  expect(text).toContain('left out. The CPU emulates the GPU');
});

test('steps run the commands, in processes of their own', {
  tags: ['full'],
  timeout: 300_000,
}, async () => {
  const model = 'bench -- model --synthetic wan2.2-ti2v-5b --layers 1 --tokens 4 --latent 2x2';
  const results: StepResult[] = [];
  await runSteps(
    [
      // On the CPU, whose kernels need no compiling; the browser's commands have tests of their own.
      { name: 'Blocks', command: `${model} --json -`, json: true, limitMinutes: 4 },
      { name: 'Parity', command: 'parity --', json: false, limitMinutes: 4 },
      { name: 'Refused', command: 'parity -- nowhere', json: false, limitMinutes: 1 },
      { name: 'Late', command: 'parity --', json: false, limitMinutes: 0.001 },
    ],
    async (result) => void results.push(result),
  );
  expect(results.map(({ outcome }) => outcome)).toEqual(['done', 'done', 'failed', 'failed']);
  const [, parity, refused, late] = results;
  expect(parity?.output).toContainEqual(expect.stringMatching(/^\d+ passed, 0 failed$/));
  expect(refused?.reason).toContain('nowhere has no golden.json.');
  expect(late?.reason).toContain('It had not ended after');
  const text = reportMarkdown({ date: kernels.date, system: 'Linux', steps: results });
  expect(text).toMatch(/\| transformer block \| [\d.e+]+ \| [\d.e+-]+ \|/);
  expect(text).toContain('The device is not known.');
});
