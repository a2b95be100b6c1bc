import { ApiError } from '../../lib/contract/v3';
import type { Store } from '../store/store';

/** Answers that are held open for one key at a time on this node, at most. */
export const maxHeld = 50;

const held = new WeakMap<Store, Map<string, number>>();

/**
 * Counts one more answer that is held open for a key: each costs a connection, and a look at the
 * database every few seconds.
 *
 * @param store of the node
 * @returns counts it no more; calling it again changes nothing
 * @throws ApiError `RATE_LIMITED` when the key has too many open already
 */
export function holdOne(store: Store, keyId: string): () => void {
  const letGo = tryHold(store, keyId);
  if (letGo) return letGo;
  throw new ApiError(
    'RATE_LIMITED',
    `This key has ${maxHeld} answers open, and may have no more.`,
    {
      headers: { 'Retry-After': '5' },
      remedy: 'Close one, or ask for the results by `urls.get`.',
    },
  );
}

/** The same where an answer can do without being held: null when the key has too many open already. */
export function tryHold(store: Store, keyId: string): (() => void) | null {
  const counts = held.get(store) ?? new Map<string, number>();
  held.set(store, counts);
  const open = counts.get(keyId) ?? 0;
  if (open >= maxHeld) return null;
  counts.set(keyId, open + 1);
  let counted = true;
  return () => {
    if (!counted) return;
    counted = false;
    const left = (counts.get(keyId) ?? 1) - 1;
    if (left > 0) counts.set(keyId, left);
    else counts.delete(keyId);
  };
}
