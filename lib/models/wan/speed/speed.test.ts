import { expect, test, vi } from 'vitest';
import { elementCount } from '../../../gpu';
import type { TuningResult } from '../../../gpu/kernels/tune';
import { readModelConfig } from '../model-config';
import { nodeBackend, realFolder, tinyFolder } from '../testing/model';
import { publishedTinyDecoder } from '../tiny-decoder/tiny-decoder-weights';
import { passFlops } from '../tokens';
import { transformerTensors } from '../wan-tensors';
import { measureSpeed, type SpeedLine, type SpeedReport } from '.';
import { clipOfTokens, decoderFlops, syntheticCheckpoint } from './networks';
import { nativeClip, project, projectorOf } from './projection';
import { reportText } from './text';

const config = await readModelConfig(realFolder);
const tiny = { id: 'tiny', config: await readModelConfig(tinyFolder) };
vi.stubGlobal('navigator', { userAgent: 'Chrome/156.0.0.0 (X11; Linux x86_64)' });

const line = (
  measurement: SpeedLine['measurement'],
  mode: SpeedLine['mode'],
  rate: number | null,
  more: Partial<SpeedLine> = {},
): SpeedLine => ({
  measurement,
  mode,
  rate,
  size: '',
  variant: '',
  flops: 1,
  seconds: null,
  share: null,
  difference: null,
  projected: null,
  reason: null,
  ...more,
});

test('a forward pass of the 5B is 517 TFLOP', () => {
  const forward = (tokens: number) => passFlops(config.transformer, tokens, 512) / 1e12;
  // The published count also has what is around the blocks.
  expect(forward(27_280)).toBeGreaterThan(515);
  expect(forward(27_280)).toBeLessThan(517);
  expect(forward(53_680) / 1539).toBeCloseTo(1, 2);
});

test('the tiny decoder has the parameters of the published one', () => {
  const shapes = [...publishedTinyDecoder(config).values()];
  expect(shapes.reduce((sum, shape) => sum + elementCount(shape), 0)).toBe(9_923_532);
});

test('synthetic weights are the same each time, have the right size and unit gain', async () => {
  const one = { ...tiny.config.transformer, num_layers: 1 };
  const checkpoint = syntheticCheckpoint(transformerTensors(one), 'int8');
  const name = 'blocks.0.ffn.net.2.weight';
  const bias = 'blocks.0.ffn.net.2.bias';
  const stored = await checkpoint.readStored([name, bias]);
  expect(stored).toEqual(await checkpoint.readStored([name, bias]));
  const weight = stored.get(name);
  if (!weight || weight instanceof Float32Array) throw new Error('not in blocks');
  const [rows = 0, columns = 0] = checkpoint.shape(name);
  expect(weight.values.length).toBe(rows * columns);
  expect(weight.scales.length).toBe((rows * columns) / 32);
  let power = 0;
  for (const [i, byte] of weight.values.entries()) {
    power += ((byte - 128) * (weight.scales[i >> 5] ?? 0)) ** 2;
  }
  expect(power / rows).toBeCloseTo(1, 1);
  expect(stored.get(bias)).toBeInstanceOf(Float32Array);
});

test('a clip has exactly the tokens asked for', () => {
  expect(clipOfTokens(config.transformer, 128)).toEqual({ frames: 2, height: 2, width: 128 });
  expect(clipOfTokens(config.transformer, 27_280)).toEqual({ frames: 31, height: 44, width: 80 });
});

test('operators of one speed take the time of the counted work', () => {
  const rate = 1e13;
  const [exact, ...others] = project(config, [
    line('linear', 'exact', rate),
    line('linear', 'exact', rate / 2),
    line('attention', 'exact', rate),
    line('convolution', 'exact', rate),
    line('linear', 'runtime', rate / 10),
  ]);
  const pass = passFlops(config.transformer, 27_280, 512) / rate;
  expect(exact?.seconds['one pass']).toBeCloseTo(pass, 6);
  expect(exact?.seconds['one block']).toBeCloseTo(pass / 30, 6);
  expect(exact?.seconds['4 steps']).toBeCloseTo(4 * pass, 6);
  expect(exact?.seconds['30 steps']).toBeCloseTo(60 * pass, 6);
  const decode = (decoder: 'tiny' | 'full') => decoderFlops(config, decoder, nativeClip) / rate;
  expect(exact?.seconds['full decoder']).toBeCloseTo(decode('full'), 6);
  expect(exact?.seconds['small decoder']).toBeCloseTo(decode('tiny'), 6);
  // The runtime's attention was not measured.
  expect(others).toEqual([]);
});

test('a mode takes what it lacks from exact, and only that', () => {
  const lines = [
    line('linear', 'exact', 1e12),
    line('attention', 'exact', 1e12),
    line('linear', 'fast', 2e12),
    line('attention', 'fast', null),
  ];
  const [exact, fast, ...others] = project(config, lines);
  expect([exact?.mode, fast?.mode, others]).toEqual(['exact', 'fast', []]);
  const slow = exact?.seconds['one pass'] ?? 0;
  const attention = 4 * 27_280 * (27_280 + 512) * 3072 * 30 * 1e-12;
  expect(fast?.seconds['one pass']).toBeCloseTo(attention + (slow - attention) / 2, 3);
  expect(projectorOf(config, lines, 'runtime')).toBeNull();
});

test('a block with random weights is measured on the CPU, and nothing stays', async () => {
  const backend = nodeBackend();
  let live = Number.NaN;
  vi.spyOn(backend, 'dispose').mockImplementationOnce(async () => {
    live = backend.counters().liveBytes;
  });
  const told: SpeedReport[] = [];
  const options = { only: 'block', tokens: 16, rounds: 1 };
  const report = await measureSpeed(
    async () => backend,
    tiny,
    options,
    (so) => told.push(so),
  );
  expect(told.at(-1)).toEqual(report);
  expect(report.outcomes).toMatchObject([{ name: 'block', problem: null }]);
  const [found, ...others] = report.lines;
  expect(others).toEqual([]);
  expect(found).toMatchObject({ measurement: 'block', mode: 'runtime', projected: null });
  expect(found?.rate).toBeGreaterThan(0);
  expect(found?.seconds?.truest).toBeCloseTo((found?.flops ?? 0) / (found?.rate ?? 0), 9);
  expect(live).toBe(0);
  await backend.dispose();
});

test('a measurement that fails stops no other, and says why', { tags: ['full'] }, async () => {
  const open = async () => {
    const backend = nodeBackend();
    // Too little for the operands of the operators, enough for the self-test.
    backend.ceiling = 2 ** 22;
    return backend;
  };
  const report = await measureSpeed(open, tiny, { tokens: 16, rounds: 1 }, () => undefined);
  const problems = Object.fromEntries(report.outcomes.map(({ name, problem }) => [name, problem]));
  const names = ['self-test', 'peak', 'linear', 'attention', 'convolution'];
  expect(Object.keys(problems)).toEqual(names);
  expect(problems['self-test']).toBeNull();
  expect(problems.linear).toMatch(/memory/i);
  expect(report.selfTest.length).toBeGreaterThan(0);
});

test('the runtime’s operators and a video are measured on the CPU', {
  tags: ['full'],
  timeout: 300_000,
}, async () => {
  const all = { all: true, tokens: 16, rounds: 1 };
  const report = await measureSpeed(
    async () => nodeBackend(),
    tiny,
    all,
    () => undefined,
  );
  expect(report.outcomes.map(({ problem }) => problem)).toEqual(report.outcomes.map(() => null));
  const measured = report.lines.map(({ measurement, mode }) => `${measurement} ${mode}`);
  expect(measured).toEqual(
    ['linear', 'attention', 'convolution', 'block', 'frame', 'decoder', 'video'].map(
      (name) => `${name} runtime`,
    ),
  );
  // What is projected for the video is what its networks are projected to.
  expect(report.lines.at(-1)?.projected).toBeGreaterThan(0);
  expect(report.projections.map(({ mode }) => mode)).toEqual(['runtime']);
});

test('there is no measurement of another name', async () => {
  const asked = measureSpeed(
    async () => nodeBackend(),
    tiny,
    { only: 'x' },
    () => undefined,
  );
  await expect(asked).rejects.toMatchObject({ code: 'PARAMETER_INVALID' });
});

test('the text has what was measured, and a column only where something stands in it', () => {
  const seconds = { median: 0.5, truest: 0.4 };
  const tuning: TuningResult = {
    winners: { linear: null, attention: null, convolution: null },
    tried: [{ family: 'linear', key: 'k', name: '64×64', rate: null, reason: 'wrong numbers' }],
  };
  const ours = { variant: '128×128', share: 0.1, difference: 2e-4 };
  const text = reportText(
    {
      model: 'wan2.2-ti2v-5b',
      date: '2026-11-23T00:00:00.000Z',
      browser: 'Chrome/156.0.0.0 (X11; Linux x86_64)',
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
      outcomes: [{ name: 'block', seconds: 3, problem: 'No memory.' }],
      selfTest: [],
      peak: { multiplyAdd: 40e9, integerDot: null },
      tuning: { exact: tuning },
      lines: [
        line('linear', 'runtime', 1e9, { variant: 'ONNX Runtime', seconds, size: '8×8' }),
        line('linear', 'exact', 4e9, { ...ours, seconds }),
        line('linear', 'exact', null, { variant: '64×64', reason: 'no f16' }),
        line('video', 'exact', 4e9, { seconds, projected: 0.3, size: '4 steps' }),
      ],
      projections: [],
    },
    '0',
  );
  expect(text).toMatch(/^# Kinora on a graphics card\n\ngoogle swiftshader, computed by the CPU/);
  expect(text).toContain('X11; Linux x86_64, 2026-11-23, Kinora 0');
  expect(text).toContain('Modes: exact, fast. Workgroup memory 16 KiB, binding 128 MiB');
  expect(text).toContain('Used without subgroups: with it the self-test gives wrong numbers.');
  expect(text).toContain('| 8-bit dot product | not there |');
  expect(text).toContain('**Check and tuning of our variants, exact**');
  expect(text).toContain('| linear | 64×64 | wrong numbers |');
  expect(text).toContain('**Query, key, value, output: 8×8**');
  expect(text).toContain('| ONNX Runtime |  | 500 | 400 | 1.00 |  |  |  |  |');
  expect(text).toContain('| 128×128 | exact | 500 | 400 | 4.00 | 10 % | 4.0× | 2.0e-4 |  |');
  expect(text).toContain('| 64×64 | exact |  |  |  |  |  |  | no f16 |');
  expect(text).toContain('| mode | ms median | ms | GFLOP/s | ms projected | error |');
  expect(text).toContain('| exact | 500 | 400 | 4.00 | 300 | -25 % |');
  expect(text).toContain('| block | 3 | No memory. |');
});
