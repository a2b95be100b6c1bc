import { expect, test } from 'vitest';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { readModelConfig } from '../config';
import { planTiles, tiledDecoderMemory, vaeDecoderMemory, vaeEncoderMemory } from '.';

const { vae: tiny } = await readModelConfig(diskFolder(`${root}model`));
/** Wan2.2's own VAE (reference §1.4). */
const real = { ...tiny, base_dim: 160, decoder_base_dim: 256 };
const gibibyte = 2 ** 30;
const plan = (budget: number) => planTiles(real, 44, 80, budget * gibibyte);

test('whole frames where they fit', () => {
  expect(plan(10)).toBe('full');
});

test('a decode that differs from that of whole frames has more than one tile', () => {
  expect(plan(vaeDecoderMemory(real, 44, 80).total / gibibyte - 1e-6)).toEqual({
    rows: 1,
    columns: 2,
    overlap: 8,
  });
});

test('two columns are the first thing to try', () => {
  // 1.10 times the work (reference §5.6).
  expect(plan(7)).toEqual({ rows: 1, columns: 2, overlap: 8 });
});

test('a plan keeps to its budget, down to the least one', () => {
  const rows: Record<string, string> = {};
  for (const budget of [9, 7, 5, 4, 3, 2.5, 2, 1.75, 1.5]) {
    const tiling = plan(budget);
    if (tiling === 'full' || tiling === null) throw new Error(`${budget} GiB: ${tiling}`);
    const { total } = tiledDecoderMemory(real, 44, 80, tiling);
    expect(total).toBeLessThanOrEqual(budget * gibibyte);
    const grid = `${tiling.rows}×${tiling.columns}, ${tiling.overlap} shared`;
    rows[`${budget} GiB`] = `${grid}: ${(total / gibibyte).toFixed(2)} GiB`;
  }
  console.table(rows);
  expect(plan(1)).toBeNull();
});

test('the least budgets of the decoder and of the encoder', () => {
  let [least, none] = [9.6, 0];
  while (least - none > 0.005) {
    const middle = (least + none) / 2;
    if (plan(middle) === null) none = middle;
    else least = middle;
  }
  const encoder = vaeEncoderMemory(real, 44, 80).total / gibibyte;
  const narrow = vaeEncoderMemory(real, 44, 80, 2 ** 20).total / gibibyte;
  console.log(`decoder ${least.toFixed(2)} GiB, encoder ${encoder.toFixed(2)} GiB`);
  console.log(`encoder in bands of 1 MiB ${narrow.toFixed(2)} GiB`);
  expect(least).toBeLessThan(1.5);
  expect(encoder).toBeLessThan(1.35);
});

test('the tiny model can be tiled as well', () => {
  const whole = vaeDecoderMemory(tiny, 4, 6).total;
  expect(planTiles(tiny, 4, 6, whole)).toBe('full');
  const tiling = { rows: 1, columns: 2, overlap: 4 };
  const tiled = tiledDecoderMemory(tiny, 4, 6, tiling).total;
  expect(planTiles(tiny, 4, 6, tiled)).toEqual(tiling);
  expect(planTiles(tiny, 4, 6, tiled - 1)).toBeNull();
});
