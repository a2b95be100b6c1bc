import { type Backend, elementCount, type Scope } from '../backend';
import type { ReadableTensor } from '../tensor';
import type { CheckDevice, CheckResult } from './check';
import type {
  AttentionVariant,
  ConvolutionVariant,
  Family,
  LinearVariant,
  MatrixAttentionVariant,
} from './choice';
import type { Compute, Dispatch } from './compute';
import type { Kernel } from './kernel';
import { smallestFirst } from './registers';
import type { Candidate, TunedFamily } from './tune';

/** What decides which variants fit. */
export type KernelDevice = Pick<Compute, 'features' | 'limits' | 'matrices' | 'subgroupSizes'>;

/** A variant of any family. */
export type Variant =
  | LinearVariant
  | AttentionVariant
  | MatrixAttentionVariant
  | ConvolutionVariant;

/**
 * Kernels that compute the same in other geometries: all that the tuner, the check at the start and reports know of them.
 */
export interface KernelFamily<V extends Variant = Variant> {
  readonly name: Family;
  /** Those that fit a device, the best guess first. */
  variants(device: KernelDevice): readonly V[];
  /** Numbers that a thread of a variant adds to in registers. */
  results(variant: V): number;
  /** Of the work that is timed, or of a small one, whose text stands for the variant's. */
  kernel(variant: V, work: 'timed' | 'small'): Kernel;
  /** What the check runs. */
  checked(variant: V): readonly Kernel[];
  /** What prepares operands of this family alone. */
  readonly preparing?: readonly Kernel[];
  /** Compares a variant with double precision: odd sizes, extreme numbers (`check.ts`). */
  check(device: CheckDevice, variant: V): Promise<CheckResult>;
  /** Floating point operations of the work that is timed. */
  readonly flops: number;
  /** Makes the work that is timed, of the model's sizes: enough that each of 150 processors has several workgroups. */
  work(scope: Scope, compute: Compute): Promise<TimedWork<V>>;
}

/** Operands of a model's sizes. */
interface TimedWork<V> {
  readonly result: ReadableTensor;
  /** The first rows of the work. @param share 0 … 1 */
  jobs(variant: V, share: number): Promise<readonly Dispatch[]>;
}

/** What the candidates of a device are made with. */
export interface TunedFamilyOptions {
  readonly backend: Backend;
  readonly compute: Compute;
  /** Whether variants are timed too. Where not, those that compile fast come first. */
  readonly timing: boolean;
  /** Owns the tensors of the timed work. */
  readonly scope: Scope;
}

/** A variant with the kernel that is timed. */
interface TimedCandidate<V = unknown> extends Candidate<V> {
  readonly timed: Kernel;
}

/** A family whose timed work is known, so that others can compute the same. */
export interface TimedFamily<V = unknown> extends TunedFamily<V> {
  readonly candidates: readonly TimedCandidate<V>[];
  /** What the timed work has computed; of a share of it, the first rows are. */
  result(): Promise<ReadableTensor>;
}

/** A family as the tuner sees it. Memory is taken when a variant is timed first. */
export function timedFamily<V extends Variant>(
  family: KernelFamily<V>,
  { backend, compute, timing, scope }: TunedFamilyOptions,
): TimedFamily<V> {
  let made: Promise<TimedWork<V>> | undefined;
  const work = () => {
    made ??= family.work(scope, compute);
    return made;
  };
  const variants = family.variants(compute);
  return {
    family: family.name,
    flops: family.flops,
    candidates: (timing ? variants : bySize(family, variants)).map((variant) =>
      candidateOf(family, variant, timing),
    ),
    check: ({ variant }) => family.check({ backend, compute }, variant),
    result: async () => (await work()).result,
    run: async ({ variant }, share, times) => {
      const jobs = await (await work()).jobs(variant, share);
      await compute.dispatch(Array.from({ length: times }, () => jobs).flat());
      await backend.settle();
    },
  };
}

/** Variants from the smallest to the largest: an emulated GPU takes seconds to compile a large one. */
export function bySize<V extends Variant>(
  { results }: Pick<KernelFamily<V>, 'results'>,
  variants: readonly V[],
): readonly V[] {
  return smallestFirst(variants, results);
}

function candidateOf<V extends Variant>(
  family: KernelFamily<V>,
  variant: V,
  timing: boolean,
): TimedCandidate<V> {
  const timed = family.kernel(variant, 'timed');
  const checked = family.checked(variant);
  const name = timed.name.replace(/^[^,]*, /, '');
  const kernels = timing && !checked.includes(timed) ? [...checked, timed] : checked;
  const results = family.results(variant);
  // Tiles in f16 suit a device or do not, whatever their size.
  const half = 'shared' in variant && variant.shared === 'f16' && !('matrix' in variant);
  const registerClass = half ? 'f16' : `${results}`;
  return { variant, key: timed.key, name, registerClass, results, kernels, timed };
}

/** A tensor of f16 numbers of usual size, or larger ones. */
export function halves(scope: Scope, dims: readonly number[], scale?: number) {
  return scope.tensor('float16', dims, 'activations', halfBits(elementCount(dims), scale));
}

/**
 * The content of any timed operand: f16 from 1/8 to 1/4, of both signs; zeros would spare the device work. Rows of a
 * usual width differ.
 *
 * @param scale binary logarithm of a factor, with which the numbers are others
 */
export function halfBits(count: number, scale = 0): Uint16Array<ArrayBuffer> {
  const words = new Uint16Array(count);
  let state = 1 + scale;
  // A prime.
  const first = Math.min(count, 4099);
  for (let i = 0; i < first; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    words[i] = (0x3000 + (scale << 10)) | ((state >>> 16) & 0x83ff);
  }
  for (let done = first; done < count; done *= 2) words.copyWithin(done, 0, done);
  return words;
}
