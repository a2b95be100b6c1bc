import { type Backend, elementCount, relativeRms, Scope } from '../../../gpu';
import type { KernelMode } from '../../../gpu/kernels';
import { halfBits, timedLayer, timedSizes, tunedFamilies } from '../../../gpu/kernels/candidates';
import { fromHalf } from '../../../gpu/kernels/half';
import { type Peak, peakRate } from '../../../gpu/kernels/peak-rate';
import { timeInTurns } from '../../../gpu/kernels/time';
import type { Family } from '../../../gpu/kernels/tune';
import { linearShape } from '../../../gpu/kernels/tuned-shapes';
import { convolution, GraphBuilder, matMulBlocks, multiHeadAttention } from '../../../onnx';
import type { SpeedLine } from './report';

/*
 * The operators that take a model's time, as the tuner times their variants: each beside the runtime's kernel, which
 * reads the same operands in f32.
 */

/** The runtime's kernel for a share of an operator's timed work. */
interface RuntimeWork {
  /** For people. */
  readonly size: string;
  readonly flops: number;
  /** Computes it once. */
  run(): Promise<void>;
  /** What it has computed. */
  read(): Promise<Float32Array>;
}

interface Operator {
  readonly name: 'linear' | 'attention' | 'convolution';
  /** What the tuner compares in each mode. */
  readonly families: Readonly<Partial<Record<KernelMode, Family>>>;
  /** How much of the tuner's work is measured: on a device, and where the CPU computes. */
  readonly share: { readonly device: number; readonly cpu: number };
  runtime(scope: Scope, share: number): RuntimeWork;
}

export const operators: readonly Operator[] = [
  {
    name: 'linear',
    families: { exact: 'linear', fast: 'fastLinear', matrix: 'linear' },
    share: { device: 1 / 4, cpu: 1 / 64 },
    runtime(scope, share) {
      const { k, n } = linearShape('timed');
      const rows = timedSizes.tokens * share;
      const g = new GraphBuilder('linear');
      const x = g.input('x', 'float32', [rows, k]);
      const values = g.input('values', 'uint8', [n, k / 32, 32]);
      const [scales, bias] = [
        g.input('scales', 'float32', [n, k / 32]),
        g.input('bias', 'float32', [n]),
      ];
      g.output('y', matMulBlocks(x, values, scales, bias, 8));
      const inputs = { x: floats(scope, [rows, k]), ...timedLayer(scope, { k, n }) };
      const work = { size: `${rows}×${k}×${n}, 8 bits`, flops: 2 * rows * k * n };
      return { ...work, ...runtimeWork(scope, g, inputs, [rows, n]) };
    },
  },
  {
    name: 'attention',
    families: { exact: 'attention', fast: 'fastAttention', matrix: 'matrixAttention' },
    // The runtime writes the logits of all queries and keys.
    share: { device: 1 / 8, cpu: 1 / 512 },
    runtime(scope, share) {
      const { queries, keys, heads, headSize } = timedSizes;
      const rows = queries * share;
      const width = heads * headSize;
      const g = new GraphBuilder('attention');
      const input = (name: string, count: number) => g.input(name, 'float32', [1, count, width]);
      const scale = 1 / Math.sqrt(headSize);
      const [q, k, v] = [input('q', rows), input('k', keys), input('v', keys)];
      g.output('y', multiHeadAttention(q, k, v, { heads, scale }));
      const content = (count: number) => floats(scope, [1, count, width]);
      const inputs = { q: content(rows), k: content(keys), v: content(keys) };
      const size = `${heads} × ${headSize} channels, ${rows} queries, ${keys} keys`;
      const work = { size, flops: 4 * rows * keys * width };
      return { ...work, ...runtimeWork(scope, g, inputs, [1, rows, width]) };
    },
  },
  {
    name: 'convolution',
    families: { exact: 'convolution', matrix: 'matrixConvolution' },
    share: { device: 1, cpu: 1 / 176 },
    runtime(scope, share) {
      const { height, width, channels } = timedSizes.band;
      const rows = height * share;
      const image = [1, rows, width, channels] as const;
      // Three frames of one content lie behind each other in the channels of a pixel.
      const frame = fromHalf(halfBits(elementCount(image)));
      const pixels = new Float32Array(3 * frame.length);
      for (let i = 0; i < pixels.length; i += channels) {
        const first = Math.floor(i / channels / 3) * channels;
        pixels.set(frame.subarray(first, first + channels), i);
      }
      const dims = [1, rows, width, 3 * channels] as const;
      const filters = [channels, 3 * channels, 3, 3] as const;
      const g = new GraphBuilder('convolution');
      const [x, weight, bias] = [
        g.input('x', 'float32', dims),
        g.input('weight', 'float32', filters),
        g.input('bias', 'float32', [channels]),
      ];
      const options = { pads: [1, 1, 1, 1] } as const;
      g.output('y', convolution(x, weight, bias, scope.backend.convLayout, options));
      const inputs = {
        x: scope.float32(dims, 'activations', pixels),
        weight: floats(scope, filters),
        bias: scope.float32([channels], 'weights'),
      };
      const size = `three frames of ${rows}×${width}, ${channels} channels to as many`;
      const work = { size, flops: 2 * 27 * channels ** 2 * rows * width };
      return { ...work, ...runtimeWork(scope, g, inputs, image) };
    },
  },
];

/** f32 numbers that f16 holds exactly: the content of the tuner's operands. */
function floats(scope: Scope, dims: readonly number[]) {
  return scope.float32(dims, 'activations', fromHalf(halfBits(elementCount(dims))));
}

function runtimeWork(
  scope: Scope,
  builder: GraphBuilder,
  inputs: Parameters<Backend['run']>[1],
  dims: readonly number[],
): Pick<RuntimeWork, 'run' | 'read'> {
  const graph = builder.build();
  const y = scope.float32(dims, 'activations');
  return {
    run: () => scope.backend.run(graph, inputs, { y }),
    read: () => scope.backend.read(y),
  };
}

/** Beyond these a kernel computes wrong numbers: rounding of 8-bit products is far below. */
const mostDifference: Readonly<Record<KernelMode, number>> = {
  exact: 2e-3,
  matrix: 2e-3,
  fast: 5e-2,
};

export interface OperatorOptions {
  readonly modes: readonly KernelMode[];
  /** Variants of each mode, the best guesses first. */
  readonly variants: number;
  /** Measurements of each kernel. */
  readonly rounds: number;
  /** Whether the CPU computes, which gets less to do. */
  readonly slow: boolean;
  /** Null where it is not known. */
  readonly peak: Peak | null;
}

/**
 * Measures an operator: the runtime's kernel and the tuner's candidates, in turns, each many times in a submission.
 *
 * @param onLine takes each line as it is known
 * @throws KinoraError when the device is lost or has no memory for the operands
 */
export async function measureOperator(
  backend: Backend,
  { name, families, share: shares, runtime }: Operator,
  { modes, variants, rounds, slow, peak }: OperatorOptions,
  onLine: (line: SpeedLine) => void,
): Promise<void> {
  const { compute } = backend;
  const scope = new Scope(backend);
  type Head = Pick<SpeedLine, 'variant' | 'mode' | 'difference'>;
  const works: { head: Head; key: string | null; run: (times: number) => Promise<void> }[] = [];
  try {
    const share = slow ? shares.cpu : shares.device;
    const reference = runtime(scope, share);
    const { size, flops } = reference;
    const lineOf = (head: Head, seconds: SpeedLine['seconds'], reason: string | null = null) => {
      const rate = seconds && flops / seconds.truest;
      // The peak of matrix units is not measured.
      const most =
        peak && head.mode !== 'matrix' ? peakRate(peak, name, head.mode === 'fast') : null;
      const ofPeak = rate && most ? rate / most : null;
      const line = {
        measurement: name,
        size,
        flops,
        ...head,
        seconds,
        rate,
        share: ofPeak,
        reason,
      };
      return { ...line, projected: null };
    };
    await reference.run();
    const expected = await reference.read();
    works.push({
      head: { variant: 'ONNX Runtime', mode: 'runtime', difference: null },
      key: null,
      run: async (times) => {
        for (let i = 0; i < times; i++) await reference.run();
        await backend.settle();
      },
    });
    for (const mode of compute ? modes : []) {
      if (!compute) break;
      const tuned = tunedFamilies({ backend, compute, mode, timing: true, scope }).find(
        ({ family }) => family === families[mode],
      );
      for (const candidate of tuned?.candidates.slice(0, variants) ?? []) {
        if (!tuned) break;
        const head = { variant: candidate.name, mode, difference: null };
        const [failure] = await compute.compile([candidate.timed]);
        if (failure) {
          onLine(lineOf(head, null, failure.reason));
          continue;
        }
        await tuned.run(candidate, share, 1);
        const computed = (await backend.read(tuned.result())).subarray(0, expected.length);
        const difference = relativeRms(computed, expected);
        if (!(difference <= mostDifference[mode])) {
          onLine(lineOf({ ...head, difference }, null, 'its numbers are wrong'));
          continue;
        }
        const run = (times: number) => tuned.run(candidate, share, times);
        works.push({ head: { ...head, difference }, key: candidate.key, run });
      }
    }
    const timings = await timeInTurns(
      works.map(({ run }) => run),
      {
        rounds,
        warm: true,
        // How fast a kernel is decides how much of it one submission is given.
        onMeasured: (index, seconds) => {
          const key = works[index]?.key;
          if (key) compute?.rates.set(key, flops / seconds);
        },
      },
    );
    for (const [i, { head }] of works.entries()) onLine(lineOf(head, timings[i] ?? null));
  } finally {
    scope.dispose();
    await backend.releaseSessions();
  }
}
