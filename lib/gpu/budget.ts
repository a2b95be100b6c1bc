import type { Backend } from './backend';

/** A probe is as precise as this share of what is wanted. */
const precision = 1 / 32;

/**
 * Finds out how much memory the device gives, by asking for it: first for all that is wanted, and only
 * where that fails for less. Nothing of it is kept, and nothing beyond what is wanted is asked for.
 *
 * @param wanted bytes of the plan in which everything fits
 * @returns bytes that the device gave; 0 where it gives none
 */
export async function probeBudget(
  backend: Pick<Backend, 'canHold'>,
  wanted: number,
): Promise<number> {
  if (await backend.canHold(wanted)) return wanted;
  let [given, refused] = [0, wanted];
  while (refused - given > wanted * precision) {
    const middle = Math.floor((given + refused) / 2);
    if (await backend.canHold(middle)) given = middle;
    else refused = middle;
  }
  return given;
}
