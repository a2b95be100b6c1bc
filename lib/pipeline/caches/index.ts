import type { MagCacheSettings } from '../../contract';

export { EasyCache, type EasyCacheOptions } from './easycache';
export { magCacheSkips } from './magcache';

/** Which steps reuse results of earlier ones, and by what rule. */
export type StepCache =
  | { readonly kind: 'none' }
  | { readonly kind: 'magcache'; readonly settings: MagCacheSettings }
  | { readonly kind: 'easycache' };

/**
 * Limits of EasyCache: upstream computes the first 10 of 50 steps; the threshold is the default of
 * stable-diffusion.cpp.
 */
export const easyCacheLimits = { threshold: 0.2, computedShare: 0.2 } as const;
