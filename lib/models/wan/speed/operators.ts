import { type Bindings, elementCount, relativeRms, Scope } from '../../../gpu';
import type { KernelMode } from '../../../gpu/kernels';
import { queryScale, timedAttention } from '../../../gpu/kernels/attention-family';
import type { Family } from '../../../gpu/kernels/choice';
import { timedBand } from '../../../gpu/kernels/convolution-family';
import { tunedFamilies } from '../../../gpu/kernels/families';
import { halfBits } from '../../../gpu/kernels/family';
import { fromHalf } from '../../../gpu/kernels/half';
import { linearShape, timedLayer, timedTokens } from '../../../gpu/kernels/linear-family';
import { peakRate } from '../../../gpu/kernels/peak-rate';
import { timeInTurns } from '../../../gpu/kernels/time';
import {
  convolution,
  GraphBuilder,
  matMulBlocks,
  multiHeadAttention,
  type Value,
} from '../../../onnx';
import type { Run, SpeedLine } from './report';

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
  /** Its result. */
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
      const rows = timedTokens * share;
      const inputs = { x: floats(scope, [rows, k]), ...timedLayer(scope, { k, n }) };
      return {
        size: `${rows}×${k}×${n}, 8 bits`,
        flops: 2 * rows * k * n,
        ...runtimeWork(scope, inputs, [rows, n], ({ x, values, scales, bias }) =>
          matMulBlocks(x, values, scales, bias, 8),
        ),
      };
    },
  },
  {
    name: 'attention',
    families: { exact: 'attention', fast: 'fastAttention', matrix: 'matrixAttention' },
    // The runtime writes the logits of all queries and keys.
    share: { device: 1 / 8, cpu: 1 / 512 },
    runtime(scope, share) {
      const { keys, heads, size } = timedAttention;
      const rows = timedAttention.rows * share;
      const width = heads * size;
      const content = (count: number, scale?: number) => floats(scope, [1, count, width], scale);
      const inputs = { q: content(rows, queryScale), k: content(keys), v: content(keys) };
      const options = { heads, scale: 1 / Math.sqrt(size) };
      return {
        size: `${heads} × ${size} channels, ${rows} queries, ${keys} keys`,
        flops: 4 * rows * keys * width,
        ...runtimeWork(scope, inputs, [1, rows, width], ({ q, k, v }) =>
          multiHeadAttention(q, k, v, options),
        ),
      };
    },
  },
  {
    name: 'convolution',
    families: { exact: 'convolution', matrix: 'matrixConvolution' },
    share: { device: 1, cpu: 1 / 176 },
    runtime(scope, share) {
      const { height, width, channels: c } = timedBand;
      const rows = height * share;
      const frame = fromHalf(halfBits(rows * width * c));
      // Three frames of one content lie behind each other in the channels of a pixel.
      const pixels = new Float32Array(3 * frame.length);
      for (let i = 0; i < pixels.length; i++) {
        pixels[i] = frame[Math.floor(i / (3 * c)) * c + (i % c)] as number;
      }
      const inputs = {
        x: scope.float32([1, rows, width, 3 * c], 'activations', pixels),
        weight: floats(scope, [c, 3 * c, 3, 3]),
        bias: scope.float32([c], 'weights'),
      };
      const { convLayout } = scope.backend;
      return {
        size: `three frames of ${rows}×${width}, ${c} channels to as many`,
        flops: 2 * 27 * c ** 2 * rows * width,
        ...runtimeWork(scope, inputs, [1, rows, width, c], ({ x, weight, bias }) =>
          convolution(x, weight, bias, convLayout, { pads: [1, 1, 1, 1] }),
        ),
      };
    },
  },
];

/** f32 numbers that f16 holds exactly: the content of the tuner's operands. */
function floats(scope: Scope, dims: readonly number[], scale?: number) {
  return scope.float32(dims, 'activations', fromHalf(halfBits(elementCount(dims), scale)));
}

/** The inputs of a graph that tensors are bound to. */
type Values<T extends Bindings> = { readonly [Name in keyof T]: Value<T[Name]['dtype']> };

/** One call of the runtime on tensors. @param dims of its result */
function runtimeWork<T extends Bindings>(
  scope: Scope,
  inputs: T,
  dims: readonly number[],
  call: (values: Values<T>) => Value,
): Pick<RuntimeWork, 'run' | 'read'> {
  const g = new GraphBuilder('operator');
  const values = Object.entries(inputs).map(([name, { dtype, dims }]) => {
    return [name, g.input(name, dtype, dims)] as const;
  });
  g.output('y', call(Object.fromEntries(values) as unknown as Values<T>));
  const graph = g.build();
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

/**
 * Measures an operator: the runtime's kernel and the tuner's candidates, in turns, each many times in a submission.
 *
 * @throws KinoraError when the device is lost or has no memory for the operands
 */
export async function measureOperator(
  { backend, options, rounds, slow, report, addLine }: Run,
  { name, families, share: shares, runtime }: Operator,
): Promise<void> {
  const { all, variants = all ? (slow ? 2 : Number.POSITIVE_INFINITY) : 1 } = options;
  const { modes, peak } = report();
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
    for (const mode of modes) {
      if (!compute) break;
      const tuned = tunedFamilies({ backend, compute, mode, timing: true, scope }).find(
        ({ family }) => family === families[mode],
      );
      for (const candidate of tuned?.candidates.slice(0, variants) ?? []) {
        if (!tuned) break;
        const head = { variant: candidate.name, mode, difference: null };
        const [failure] = await compute.compile([candidate.timed]);
        if (failure) {
          addLine(lineOf(head, null, failure.reason));
          continue;
        }
        await tuned.run(candidate, share, 1);
        const computed = (await backend.read(await tuned.result())).subarray(0, expected.length);
        const difference = relativeRms(computed, expected);
        if (!(difference <= mostDifference[mode])) {
          addLine(lineOf({ ...head, difference }, null, 'its numbers are wrong'));
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
    for (const [i, { head }] of works.entries()) addLine(lineOf(head, timings[i] ?? null));
  } finally {
    scope.dispose();
    await backend.releaseSessions();
  }
}
