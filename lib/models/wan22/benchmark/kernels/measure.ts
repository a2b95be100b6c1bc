import { type Backend, type DeviceTensor, elementCount, relativeRms, Scope } from '../../../../gpu';
import type { Compute, Dispatch, KernelMode } from '../../../../gpu/kernels';
import { type Peak, peakRate } from '../../../../gpu/kernels/peak-rate';
import { timeInTurns } from '../../../../gpu/kernels/time';

export type KernelFamily = 'linear' | 'attention' | 'convolution';

/** An operator at the model's widths, which a kernel of ours or the runtime's can compute. */
export interface KernelCase {
  readonly family: KernelFamily;
  /** Where the model has it. */
  readonly name: string;
  /** For people. */
  readonly size: string;
  readonly flops: number;
  /** Makes its operands with random content. */
  prepare(scope: Scope, compute: Compute): PreparedCase;
}

/** A case with its operands on the device. */
export interface PreparedCase {
  /** Executes the runtime's kernel once. @returns its result, which stays the same tensor */
  runtime(): Promise<DeviceTensor<'float32'>>;
  /** Run once before the candidates. */
  readonly before?: readonly Dispatch[];
  /** Best guess first. */
  readonly candidates: readonly MeasuredKernel[];
}

/** A kernel of ours for a case. */
export interface MeasuredKernel {
  readonly variant: string;
  readonly mode: KernelMode;
  /** More than one where operands have to be brought into another form first. */
  readonly jobs: readonly Dispatch[];
  readonly result: DeviceTensor<'float32'> | DeviceTensor<'float16'>;
}

/** How fast one kernel is on one case. */
export interface KernelLine {
  readonly family: KernelFamily;
  readonly case: string;
  readonly size: string;
  /** `ONNX Runtime`, or a variant of ours. */
  readonly variant: string;
  readonly mode: KernelMode | 'runtime';
  /** Of the kernel that takes most of the time; null for the runtime's. */
  readonly key: string | null;
  readonly flops: number;
  /** Of one execution. Null where the kernel could not be used. */
  readonly seconds: { readonly median: number; readonly truest: number } | null;
  /** Operations per second, of the truest time. */
  readonly rate: number | null;
  /** Of the measured peak of the arithmetic that it uses; null for matrix units, whose peak is not measured. */
  readonly share: number | null;
  /** Relative RMS to the runtime's result on the same operands. */
  readonly difference: number | null;
  /** Why it could not be used. */
  readonly reason: string | null;
}

type LineHead = Pick<KernelLine, 'variant' | 'mode' | 'key' | 'difference'>;

export interface MeasureOptions {
  /** Variants of each mode that are measured for a case, the best guesses first. */
  readonly variants: number;
  /** Measurements of each kernel. */
  readonly rounds: number;
}

/** Beyond these a kernel computes wrong numbers: rounding of 8-bit products is far below. */
const mostDifference: Record<KernelMode, number> = { exact: 2e-3, matrix: 2e-3, fast: 5e-2 };

/**
 * Measures a case: the runtime's kernel and ours, in turns.
 *
 * @param onLine takes each line as it is known
 * @throws KinoraError when the device is lost or has no memory for the operands
 */
export async function measureCase(
  backend: Backend,
  compute: Compute,
  kernelCase: KernelCase,
  peak: Peak,
  options: MeasureOptions,
  onLine: (line: KernelLine) => void,
): Promise<void> {
  const { family, name, size, flops } = kernelCase;
  const scope = new Scope(backend);
  try {
    const { runtime, before, candidates } = kernelCase.prepare(scope, compute);
    if (before) await compute.dispatch(before);
    const expected = await backend.read(await runtime());
    const repeat = (once: () => Promise<unknown>) => async (times: number) => {
      for (let i = 0; i < times; i++) await once();
      await backend.settle();
    };
    const lineOf = (
      what: LineHead,
      seconds: KernelLine['seconds'],
      reason: string | null = null,
    ): KernelLine => {
      const rate = seconds && flops / seconds.truest;
      const most = what.mode === 'matrix' ? null : peakRate(peak, family, what.mode === 'fast');
      const share = rate !== null && most !== null ? rate / most : null;
      return { family, case: name, size, flops, ...what, seconds, rate, share, reason };
    };
    const counts = new Map<KernelMode, number>();
    const usable: { what: LineHead; run: (times: number) => Promise<void> }[] = [
      {
        what: { variant: 'ONNX Runtime', mode: 'runtime', key: null, difference: null },
        run: repeat(runtime),
      },
    ];
    for (const { variant, mode, jobs, result } of candidates) {
      const count = counts.get(mode) ?? 0;
      if (count >= options.variants) continue;
      counts.set(mode, count + 1);
      const largest = jobs.reduce((a, b) => (b.flops > a.flops ? b : a));
      const what = { variant, mode, key: largest.kernel.key };
      const [failure] = await compute.compile(jobs.map(({ kernel }) => kernel));
      if (failure) {
        onLine(lineOf({ ...what, difference: null }, null, failure.reason));
        continue;
      }
      // An epilogue in place adds to what the candidate before has left.
      if (result.dtype === 'float32') {
        backend.write(result, new Float32Array(elementCount(result.dims)));
      }
      await compute.dispatch(jobs);
      const difference = relativeRms(await backend.read(result), expected);
      if (!(difference <= mostDifference[mode])) {
        onLine(lineOf({ ...what, difference }, null, 'its numbers are wrong'));
        continue;
      }
      const run = async (times: number) => {
        const start = performance.now();
        await compute.dispatch(Array.from({ length: times }, () => jobs).flat());
        await backend.settle();
        // Decides how much one dispatch and one submission are given.
        const seconds = (performance.now() - start) / 1000;
        compute.rates.set(largest.kernel.key, (flops * times) / seconds);
      };
      usable.push({ what: { ...what, difference }, run });
    }
    const timings = await timeInTurns(
      usable.map(({ run }) => run),
      { ...options, warm: true },
    );
    for (const [i, { what }] of usable.entries()) onLine(lineOf(what, timings[i] ?? null));
  } finally {
    scope.dispose();
    await backend.releaseSessions();
  }
}
