/**
 * Makes `toEqual` quick for typed arrays. Vitest compares them element by element, a second for the numbers
 * of a few frames; those with the same bytes are equal without that. All others go its usual way.
 */
import { expect } from 'vitest';

/** Set-up files run once for each test file, in Node within one process. */
const scope: typeof globalThis & { quickEquality?: boolean } = globalThis;
if (!scope.quickEquality) expect.addEqualityTesters([sameBytes]);
scope.quickEquality = true;

function sameBytes(a: unknown, b: unknown): true | undefined {
  if (!ArrayBuffer.isView(a) || !ArrayBuffer.isView(b)) return;
  if (a.constructor !== b.constructor || a.byteLength !== b.byteLength) return;
  const [left, right] = [a, b].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  if (!left || !right) return;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return;
  return true;
}
