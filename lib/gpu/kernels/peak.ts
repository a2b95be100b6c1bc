import type { Backend } from '../backend';
import type { Compute, Dispatch } from './compute';
import { defineKernel, type Kernel } from './kernel';
import type { Peak } from './peak-rate';
import { measureDelay, type TimeOptions, timeWork } from './time';

const threads = 128;
/** Independent chains of four numbers: enough for the latency of a GPU's units. */
const chains = 8;
/** Steps between two looks at the counter. */
const unrolled = 4;
const perStep = 4 * chains;

const names = Array.from({ length: chains }, (_, i) => `c${i}`);

/** A loop on registers. Every chain starts elsewhere and ends in the result, so that no compiler leaves it out. */
function loop(kind: 'multiply-add' | 'integer dot'): Kernel {
  const float = kind === 'multiply-add';
  const start = float ? 'vec4<f32>(f32(thread))' : 'vec4<i32>(i32(thread))';
  const dot = (name: string, lane: string) => `dot4I8Packed(bitcast<u32>(${name}.${lane}), w)`;
  const step = (name: string) =>
    float
      ? `${name} = fma(${name}, a, b);`
      : `${name} += vec4<i32>(${[...'xyzw'].map((lane) => dot(name, lane)).join(', ')});`;
  const body = Array.from({ length: unrolled }, () => `    ${names.map(step).join(' ')}`);
  return defineKernel({
    name: `peak ${kind}`,
    mode: float ? 'exact' : 'fast',
    bindings: [{ name: 'y', access: 'write', element: 'f32' }],
    uniforms: ['loops', 'factor: f32', 'offset: f32'],
    threads,
    workgroupBytes: 0,
    needs: float ? [] : ['packed_4x8_integer_dot_product'],
    body: `
  let a = vec4<f32>(uniforms.factor);
  let b = vec4<f32>(uniforms.offset);
  let w = bitcast<u32>(uniforms.factor);
${names.map((name, i) => `  var ${name} = ${start} + ${i};`).join('\n')}
  for (var i = 0u; i < uniforms.loops; i++) {
${body.join('\n')}
  }
  let sum = ${names.map((name) => `vec4<f32>(${name})`).join(' + ')};
  y[thread] = sum.x + sum.y + sum.z + sum.w;`,
  });
}

/** Measures within a second. */
export const quickPeak: TimeOptions = { atLeast: 0.1, rounds: 2 };

/** What is timed for a {@link Peak}. */
export const peakKernels = { multiplyAdd: loop('multiply-add'), integerDot: loop('integer dot') };

/**
 * Measures a device's peak, the denominator of every share: data sheets count instructions that a program may
 * not reach, and clocks that a laptop does not hold.
 *
 * @throws KinoraError when the device is lost
 */
export async function measurePeak(
  backend: Pick<Backend, 'tensor' | 'settle'>,
  compute: Pick<Compute, 'compile' | 'dispatch' | 'rates'>,
  options: TimeOptions = {},
): Promise<Peak> {
  const y = backend.tensor('float32', [threads], 'activations');
  const rateOf = async (kernel: Kernel, perChain: number): Promise<number | null> => {
    if ((await compute.compile([kernel])).length > 0) return null;
    let work = { loops: 64, groups: 64 };
    const flopsOf = ({ loops, groups }: typeof work) =>
      perChain * perStep * unrolled * loops * threads * groups;
    const job = (): Dispatch => ({
      kernel,
      operands: { y },
      // Converges to 1; as integers it is any bits.
      uniforms: { loops: work.loops, factor: 0.9999, offset: 0.0001 },
      groups: work.groups,
      flops: flopsOf(work),
    });
    const run = async (times: number) => {
      await compute.dispatch(Array.from({ length: times }, job));
      await backend.settle();
    };
    const measure = async (each: TimeOptions) => {
      const flops = flopsOf(work);
      // A kernel's known rate decides how much of it is submitted at a time; without it, waits count.
      const onMeasured = (_: number, seconds: number) => {
        compute.rates.set(kernel.key, flops / seconds);
      };
      const { truest } = await timeWork(run, { ...options, ...each, delay, onMeasured });
      onMeasured(0, truest);
      return flops / truest;
    };
    // Enough groups for every unit of a large GPU, as soon as the device is known not to be slow.
    if ((await measure({ atLeast: 0.02, rounds: 1 })) > 1e11) work = { loops: 256, groups: 4096 };
    await measure({ warm: true });
    return compute.rates.get(kernel.key) ?? null;
  };
  const delay = await measureDelay(() => backend.settle(), options.clock);
  try {
    return {
      multiplyAdd: (await rateOf(peakKernels.multiplyAdd, 2)) ?? Number.NaN,
      integerDot: await rateOf(peakKernels.integerDot, 8),
    };
  } finally {
    y.dispose();
  }
}
