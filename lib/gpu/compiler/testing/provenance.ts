import type { Dispatch } from '../../kernels';
import type { DeviceTensor } from '../../tensor';
import type { Slot } from '../arena';
import type { SlotOperand } from '../places';

interface Range {
  readonly tensor: DeviceTensor;
  readonly from: number;
  readonly to: number;
  readonly slot: Slot;
}

/**
 * Follows dispatches in order without computing them: what each reads of a bin must have been written last through
 * the slot that it is read through, and no bin may be read and written by one dispatch. Finds lifetimes that are too
 * short, whatever numbers there are.
 *
 * @returns the accesses that are wrong, each once
 */
export function wrongAccesses(jobs: Iterable<Dispatch>): string[] {
  let written: Range[] = [];
  const wrong: string[] = [];
  for (const { kernel, operands } of jobs) {
    const ranges = kernel.bindings.flatMap(({ name, access }) => {
      const operand = operands[name];
      if (!operand || !isOfSlot(operand)) return [];
      const { tensor, byteOffset = 0, byteSize = 0, slot } = operand;
      return [{ name, access, tensor, from: byteOffset, to: byteOffset + byteSize, slot }];
    });
    for (const range of ranges) {
      const place = `${kernel.name}: ${range.name}`;
      const there = written.filter((other) => overlaps(other, range));
      if (range.access === 'read') {
        if (there.length === 0) wrong.push(`${place} was not written`);
        if (there.some(({ slot }) => slot !== range.slot)) wrong.push(`${place} was overwritten`);
        const writes = ranges.filter(({ access }) => access === 'write');
        if (writes.some(({ tensor }) => tensor === range.tensor)) {
          wrong.push(`${place} is in a buffer that is written`);
        }
      }
    }
    for (const range of ranges) {
      if (range.access !== 'write') continue;
      const kept = written.flatMap((other) =>
        overlaps(other, range) ? cutOut(other, range) : [other],
      );
      written = [...kept, range];
    }
  }
  return [...new Set(wrong)];
}

function isOfSlot(operand: Dispatch['operands'][string]): operand is SlotOperand {
  return 'slot' in operand;
}

function overlaps(a: Range, b: Range): boolean {
  return a.tensor === b.tensor && a.from < b.to && b.from < a.to;
}

/** What is left of a range beside another one. */
function cutOut(range: Range, { from, to }: Range): Range[] {
  return [
    { ...range, to: Math.min(range.to, from) },
    { ...range, from: Math.max(range.from, to) },
  ].filter((part) => part.from < part.to);
}
