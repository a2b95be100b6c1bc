import type { Family } from './choice';
import type { Compute } from './compute';
import { subgroupSizeControl } from './kernel';

type Sizes = NonNullable<Compute['subgroupSizes']>;

/** How the variants of a family suit the registers of a GPU. */
interface Registers {
  /** Invocations of a subgroup that its kernels ask for; absent where the compiler chooses. */
  readonly subgroup?: number;
  /** Most results that a thread of a family holds without spilling, as compilers say (README). */
  readonly results: Readonly<Partial<Record<Family, number>>>;
}

/**
 * Whether a GPU divides one file of 128 registers, of eight numbers each, among subgroups of 8 to 32 invocations, as
 * Intel's do before Xe 2. The more invocations, the fewer registers a thread has: 128 of 8, 64 of 16.
 */
export function dividesRegisters({ least, most }: Sizes): boolean {
  return least === 8 && most === 32;
}

/** Null where the registers of a thread hold every variant. */
export function registersOf({
  features,
  subgroupSizes,
}: Pick<Compute, 'features' | 'subgroupSizes'>): Registers | null {
  if (!subgroupSizes || !dividesRegisters(subgroupSizes)) return null;
  const attention = { attention: 48, fastAttention: 48 };
  return features.has(subgroupSizeControl)
    ? { subgroup: 8, results: { linear: 64, fastLinear: 32, convolution: 32, ...attention } }
    : { results: { linear: 16, fastLinear: 16, convolution: 16, ...attention } };
}

/**
 * The variants of a family in the order for a device: those that its registers hold first. Where it can, they ask for
 * the size of subgroups with which they have the most.
 *
 * @param resultsOf numbers that a thread of a variant adds to
 */
export function suited<V extends { readonly subgroup?: number }>(
  device: Pick<Compute, 'features' | 'subgroupSizes'>,
  family: Family,
  variants: readonly V[],
  resultsOf: (variant: V) => number,
): readonly V[] {
  const registers = registersOf(device);
  if (!registers) return variants;
  const { subgroup, results } = registers;
  const most = results[family] ?? Number.POSITIVE_INFINITY;
  const spilled = (variant: V) => Number(resultsOf(variant) > most);
  return variants
    .toSorted((a, b) => spilled(a) - spilled(b))
    .map((variant) => (subgroup === undefined ? variant : { ...variant, subgroup }));
}

/** From the fewest results per thread, which compile fastest, to the most; of equal ones the last comes first. */
export function smallestFirst<T>(all: readonly T[], results: (one: T) => number): readonly T[] {
  return all.toReversed().toSorted((a, b) => results(a) - results(b));
}
