import type { LocatedTensor, LocatedTensors } from './located';
import { type ByteSource, checkRange, gathered } from './source';

/** A gap up to this length is fetched with what lies around it: another request would take longer. */
const mostGap = 2 ** 16;

/**
 * The bytes of a file in which some of its tensors lie, as a file of its own, so that the others are not fetched. No
 * one announces the SHA-256 of these bytes.
 *
 * @returns that file, and the same tensors in it
 */
export function neededPart({ name, identity, ...whole }: ByteSource, tensors: LocatedTensors) {
  const ranges: { readonly start: number; end: number; readonly at: number }[] = [];
  let size = 0;
  async function* stream(from: number, to: number, signal: AbortSignal) {
    checkRange(name, size, from, to);
    for (const { start, end, at } of ranges) {
      const first = start + Math.max(0, from - at);
      const last = Math.min(end, start + to - at);
      if (first < last) yield* whole.stream(first, last, signal);
    }
  }
  const source: ByteSource = {
    name,
    identity,
    sha256: null,
    stream,
    get size() {
      return size;
    },
    read: (start, end, signal = new AbortController().signal) =>
      gathered(stream(start, end, signal), end - start),
  };
  const moved = new Map<string, LocatedTensor>();
  for (const [tensor, located] of [...tensors].sort(
    ([, a], [, b]) => a.entry.start - b.entry.start,
  )) {
    const { start, end } = located.entry;
    const last = ranges.at(-1);
    const joins = last && start - last.end <= mostGap;
    const range = joins ? last : { start, end, at: size };
    if (!joins) ranges.push(range);
    range.end = end;
    size = range.at + end - range.start;
    const entry = { ...located.entry, start: size - (end - start), end: size };
    moved.set(tensor, { ...located, file: source, entry });
  }
  return { source, tensors: moved };
}
