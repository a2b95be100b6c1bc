import { ApiError } from '../../lib/contract/v3';
import type { Store } from '../store/store';

/** Answers to one key that a node keeps open at a time, at most: events and waits for results. */
export const maxOpen = 50;

const openByNode = new WeakMap<Store, Map<string, number>>();

/**
 * Counts one more open answer of a key: each costs a connection, and a look at the database every few
 * seconds.
 *
 * @param store of the node
 * @returns ends the count; calling it again changes nothing
 * @throws ApiError `RATE_LIMITED` when the key has too many open already
 */
export function countOpen(store: Store, keyId: string): () => void {
  const end = tryCountOpen(store, keyId);
  if (end) return end;
  throw new ApiError(
    'RATE_LIMITED',
    `This key has ${maxOpen} answers open, and may have no more.`,
    {
      headers: { 'Retry-After': '5' },
      remedy: 'Close one, or ask for the results by `urls.get`.',
    },
  );
}

/** {@link countOpen} for an answer that need not stay open: null when the key has too many already. */
export function tryCountOpen(store: Store, keyId: string): (() => void) | null {
  const counts = openByNode.get(store) ?? new Map<string, number>();
  openByNode.set(store, counts);
  const open = counts.get(keyId) ?? 0;
  if (open >= maxOpen) return null;
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
