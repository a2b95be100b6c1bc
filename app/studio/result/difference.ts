/** A piece of two texts: in both, only in the new one, or only in the old one. */
export interface Piece {
  readonly kind: 'same' | 'added' | 'removed';
  readonly text: string;
}

/** Most words of a text that are compared one by one; prompts that are rewritten have far fewer. */
const maxWords = 1000;

/** The difference of two texts by words and signs, Chinese by characters; spaces belong to the word before them. */
export function difference(before: string, after: string): readonly Piece[] {
  const a = wordsOf(before);
  const b = wordsOf(after);
  if (a.length > maxWords || b.length > maxWords) {
    return [
      { kind: 'removed', text: before },
      { kind: 'added', text: after },
    ];
  }
  const lengths = commonLengths(a, b);
  const at = (i: number, j: number) => lengths[i * (b.length + 1) + j] ?? 0;
  const pieces: Piece[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const old = a[i];
    const next = b[j];
    if (old !== undefined && next !== undefined && old.trim() === next.trim()) {
      pieces.push({ kind: 'same', text: next });
      i += 1;
      j += 1;
    } else if (old !== undefined && (next === undefined || at(i + 1, j) >= at(i, j + 1))) {
      pieces.push({ kind: 'removed', text: old });
      i += 1;
    } else if (next !== undefined) {
      pieces.push({ kind: 'added', text: next });
      j += 1;
    }
  }
  return joined(pieces);
}

function wordsOf(text: string): string[] {
  return text.match(/\s*(?:\p{Script=Han}|(?:(?!\p{Script=Han})[\p{L}\p{N}'’-])+|\S)\s*/gu) ?? [];
}

/** Lengths of the longest common subsequence of the words from i and from j on, row by row. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint16Array {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const same = a[i]?.trim() === b[j]?.trim();
      lengths[i * width + j] = same ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  return lengths;
}

/** Neighbours of one kind as one piece. */
function joined(pieces: readonly Piece[]): Piece[] {
  const result: Piece[] = [];
  for (const piece of pieces) {
    const last = result.at(-1);
    if (last?.kind === piece.kind) result.splice(-1, 1, { ...last, text: last.text + piece.text });
    else result.push(piece);
  }
  return result;
}
