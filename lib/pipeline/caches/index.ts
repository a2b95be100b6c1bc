import type { MagCacheSettings } from '../../contract';
import type { EasyCacheState } from './easycache';

export { EasyCache } from './easycache';
export { magCacheSkips } from './magcache';

/** Which steps reuse results of earlier ones, and by what rule. */
export type StepCache =
  | { readonly kind: 'none' }
  | { readonly kind: 'magcache'; readonly settings: MagCacheSettings }
  | { readonly kind: 'easycache' };

/** What a cache needs between two steps to go on as if nothing had been. */
export type CacheState =
  | { readonly kind: 'none' | 'magcache' }
  | ({ readonly kind: 'easycache' } & EasyCacheState);

/**
 * Limits of EasyCache: upstream computes the first 10 of 50 steps; the threshold is the default of
 * stable-diffusion.cpp.
 */
export const easyCacheLimits = { threshold: 0.2, computedShare: 0.2 } as const;
