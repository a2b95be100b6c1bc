import type { MagCacheSettings } from '../../contract';

export { magCacheSkips } from './magcache';

/** Which steps reuse results of earlier ones, and by what rule. */
export type StepCache =
  | { readonly kind: 'none' }
  | { readonly kind: 'magcache'; readonly settings: MagCacheSettings };
