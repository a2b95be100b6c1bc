import { at, type MagCacheSettings } from '../../contract';

/**
 * The steps at which each guidance branch reuses what its blocks added before, by MagCache (Ma et al.,
 * arXiv:2506.09045; `magcache_generate.py` of Zehong-Ma/MagCache). The ratios of the magnitudes of
 * successive residuals are constants of a model, so the pattern depends on the number of steps only.
 *
 * The last step is always computed: what it leaves out nothing corrects.
 *
 * @param settings the model's ratios and limits
 * @returns for the branch under the prompt, then for the other one: whether step i reuses
 */
export function magCacheSkips(
  steps: number,
  { ratios, threshold, mostSkips, computedShare }: MagCacheSettings,
): [conditional: boolean[], unconditional: boolean[]] {
  const branch = (index: 0 | 1): boolean[] => {
    // The list has no entries for the first step, whose residual has no predecessor.
    const own = [1, ...ratios.filter((_, i) => i % 2 === index)];
    let [ratio, skips, error] = [1, 0, 0];
    return Array.from({ length: steps }, (_, step) => {
      // Calls alternate between the branches.
      if (2 * step + index < Math.floor(computedShare * 2 * steps)) return false;
      ratio *= nearest(own, step, steps);
      skips += 1;
      error += Math.abs(1 - ratio);
      const reuses = error < threshold && skips <= mostSkips && step < steps - 1;
      if (!reuses) [ratio, skips, error] = [1, 0, 0];
      return reuses;
    });
  };
  return [branch(0), branch(1)];
}

/** Entry of a list that was measured with another number of steps. */
function nearest(list: readonly number[], step: number, steps: number): number {
  if (steps === 1) return at(list, list.length - 1);
  return at(list, roundHalfToEven((step * (list.length - 1)) / (steps - 1)));
}

/** As NumPy rounds, which upstream uses. */
function roundHalfToEven(value: number): number {
  const down = Math.floor(value);
  if (value - down !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}
