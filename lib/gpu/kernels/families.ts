import { attention, fastAttention, matrixAttention } from './attention-family';
import type { Family, KernelChoice } from './choice';
import type { Compute } from './compute';
import { convolution, matrixConvolution } from './convolution-family';
import {
  bySize,
  type KernelDevice,
  type KernelFamily,
  type TimedFamily,
  type TunedFamilyOptions,
  timedFamily,
} from './family';
import { hash, integerDots, type KernelMode } from './kernel';
import { fastLinear, linear, matrixLinear } from './linear-family';
import { matrixFeatures, matrixTilings } from './linear-matrix';
import { gainsByIntegers } from './peak-rate';

/** All families. The variants of `matrixLinear` are variants of `linear` in the mode `matrix`. */
export const families = {
  linear,
  matrixLinear,
  attention,
  convolution,
  matrixConvolution,
  matrixAttention,
  fastLinear,
  fastAttention,
};

/** What computes in a mode: families of its own, and those of `exact` for the rest. */
const ofMode: Readonly<Record<KernelMode, readonly KernelFamily[]>> = {
  exact: [linear, attention, convolution],
  fast: [linear, attention, convolution, fastLinear, fastAttention],
  matrix: [matrixLinear, attention, convolution, matrixAttention, matrixConvolution],
};

/** The names of what computes in a mode. */
export function familiesOf(mode: KernelMode): readonly Family[] {
  return ofMode[mode].map(({ name }) => name);
}

/** What computes in a mode as the tuner sees it. */
export function tunedFamilies({
  mode,
  ...options
}: TunedFamilyOptions & { readonly mode: KernelMode }): readonly TimedFamily[] {
  return ofMode[mode].map((family) => timedFamily(family, options));
}

/**
 * The best guess for a device on which nothing was measured.
 *
 * @param software takes the smallest tiles: an emulated GPU compiles them in a second, the others in many
 */
export function defaultChoice(
  device: KernelDevice,
  mode: KernelMode,
  software = false,
): KernelChoice {
  const guesses = ofMode[mode].map((family) => {
    const variants = family.variants(device);
    return [family.name, (software ? bySize(family, variants) : variants)[0] ?? null];
  });
  // Each family has variants of its own type.
  return { mode, ...Object.fromEntries(guesses) } as KernelChoice;
}

/** The modes that a device has kernels of; `fast` not where its peak was measured and integers are no faster. */
export function modesOf(
  device: KernelDevice & Partial<Pick<Compute, 'peak'>>,
): readonly KernelMode[] {
  const gains = !device.peak || gainsByIntegers(device.peak);
  return [
    'exact',
    ...(device.features.has(integerDots) && gains ? (['fast'] as const) : []),
    ...(matrixTilings(device).length > 0 ? (['matrix'] as const) : []),
  ];
}

/**
 * The mode in which a choice computes: `exact` where none of the mode's own families has a variant.
 *
 * @returns null where a family has none that every mode needs: then the runtime computes what needs it
 */
export function modeOf(choice: KernelChoice): KernelMode | null {
  const { mode, linear, attention, convolution, fastLinear, fastAttention } = choice;
  if (!linear || !attention || !convolution) return null;
  return mode === 'fast' && !fastLinear && !fastAttention ? 'exact' : mode;
}

/**
 * Names the texts of the kernels: what was measured with others is not valid any more. Those of matrices are always
 * among them, as a device has them in the mode `matrix` only.
 */
export function kernelSetOf(device: KernelDevice): string {
  const features = new Set([...device.features, ...matrixFeatures]);
  const matrices = { configs: [{ m: 8, n: 8, k: 8 }], subgroupSize: 32 };
  const complete = { ...device, features, matrices };
  const all: readonly (readonly [string, KernelFamily])[] = Object.entries(families);
  const texts = all.flatMap(([name, family]) =>
    family
      .variants(name.startsWith('matrix') ? complete : device)
      .map((variant) => family.kernel(variant, 'small')),
  );
  const preparing = all.flatMap(([, family]) => family.preparing ?? []);
  return hash([...texts, ...preparing].map(({ key }) => key).join());
}
