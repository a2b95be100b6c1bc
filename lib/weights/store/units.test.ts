/** @module-tag full */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LocatedTensor } from '../formats/located';
import { blobFile } from '../formats/source';
import { type ComponentRecipe, layoutOf, storedBytes } from './layout';
import { planUnits } from './units';

const tensor = fc.record({
  rows: fc.integer({ min: 1, max: 40 }),
  columns: fc.constantFrom(1, 3, 32, 64),
  form: fc.constantFrom('int8', 'int4', 'f32', 'compact'),
  reordered: fc.boolean(),
  needed: fc.boolean(),
  /** Bytes between it and the tensor before it. */
  gap: fc.integer({ min: 0, max: 3000 }),
});

test('units follow each other through the whole file, and every row is in one of them', () => {
  fc.assert(
    fc.property(fc.array(tensor), fc.integer({ min: 1, max: 5000 }), (tensors, limit) => {
      let end = 100; // behind the header
      const located = new Map<string, LocatedTensor>();
      const entries = tensors.map(({ rows, columns, gap }, i) => {
        const start = end + gap;
        end = start + rows * columns * 2;
        return [`t${i}`, { dtype: 'F16', shape: [rows, columns], start, end }] as const;
      });
      const file = blobFile('weights', new Blob([new Uint8Array(end + 7)]));
      for (const [name, entry] of entries) located.set(name, { file, entry, storedName: name });
      const recipe: ComponentRecipe = {
        component: 'transformer',
        tensors: tensors.flatMap(({ rows, columns, form, reordered, needed }, i) => {
          const shape = [rows, columns];
          const reorder = { shape: [columns, rows], apply: (data: Float32Array) => data };
          const base = { name: `t${i}`, source: `t${i}`, shape, form, pack: `${i % 2}.bin` };
          return needed ? [reordered ? { ...base, reorder } : base] : [];
        }),
      };
      const layout = layoutOf(recipe, () => 'F16');
      const { units, conversions } = planUnits(layout, [file], located, limit);

      let position = 0;
      for (const unit of units) {
        const follows = unit.start === position && unit.end > unit.start;
        // Longer only where one row or one reordered tensor is.
        const fits = unit.end - unit.start <= limit || unit.pieces.length === 1;
        const holds = unit.pieces.every(({ start, end }) => start >= unit.start && end <= unit.end);
        // There are thousands of them: an assertion for each takes a minute.
        if (!(follows && fits && holds)) expect.fail(JSON.stringify({ position, limit, unit }));
        position = unit.end;
      }
      expect(position).toBe(file.size);
      const rows = conversions.map(() => 0);
      for (const { tensor: index, rows: count } of units.flatMap(({ pieces }) => pieces)) {
        rows[index] = (rows[index] ?? 0) + count;
      }
      expect(rows).toEqual(recipe.tensors.map(({ shape: [count] }) => count));
    }),
  );
});

test('tensors of a pack do not overlap, and the plan knows what they take', () => {
  const recipe: ComponentRecipe = {
    component: 'transformer',
    tensors: [
      { name: 'a', source: 'a', shape: [3, 32], form: 'int8', pack: 'x' },
      { name: 'b', source: 'b', shape: [3, 33], form: 'int8', pack: 'x' },
      { name: 'c', source: 'c', shape: [5], form: 'compact', pack: 'y' },
      { name: 'd', source: 'd', shape: [2, 64], form: 'compact', pack: 'y' },
    ],
  };
  const { places, packs } = layoutOf(recipe, (name) => (name === 'd' ? 'Q6_K' : 'BF16'));
  expect(places.map(({ encoding, offset, bytes }) => [encoding, offset, bytes])).toEqual([
    ['int8', 0, 3 * 32 + 3 * 4],
    ['F32', 128, 3 * 33 * 4],
    ['BF16', 0, 10],
    ['int8', 64, 2 * 64 + 4 * 4],
  ]);
  expect(Object.fromEntries(packs)).toEqual({ x: 128 + 396, y: 64 + 144 });
  expect(storedBytes(recipe)).toBe(128 + 396 + 64 + 256);
});
