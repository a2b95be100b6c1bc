/** @module-tag full */
import { afterAll, expect, test } from 'vitest';
import { relativeRms } from '../../../gpu';
import type { Tiling } from '../../../pipeline/memory/memory-plan';
import type { TileProgress } from '../../../pipeline/model';
import { gaussianNoise } from '../../../pipeline/noise';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { nodeBackend } from '../testing/model';
import { createTiledVaeDecoder, createVaeDecoder, exactOverlap, tiledClipBytes } from './';
import { clipOf, collect, latentsOf, openGoldens } from './testing/goldens';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = nodeBackend();
const { config, checkpoint, size } = goldens;
const latents = latentsOf(goldens);
afterAll(() => backend.dispose());

// The golden's 4 rows cannot be cut and share 4; what narrower overlaps cost is measured below.
test.each([
  { rows: 1, columns: 1, overlap: 4, tolerance: 1e-4 },
  { rows: 1, columns: 2, overlap: 4, tolerance: 2e-2 },
])('the golden video in $rows×$columns tiles', async ({ tolerance, ...tiles }) => {
  const done: TileProgress[] = [];
  const decoder = await createTiledVaeDecoder(backend, config, checkpoint, {
    ...size,
    tiles,
    onTile: (progress) => done.push(progress),
  });
  expect([decoder.height, decoder.width]).toEqual([64, 96]);
  for (const round of [1, 2]) {
    const frames = await collect(decoder.decodeClip(latents));
    const error = relativeRms(clipOf(frames), await goldens.tensors.read('video'));
    console.log(`${tiles.rows}×${tiles.columns}, clip ${round}: ${error.toExponential(1)}`);
    expect(error).toBeLessThan(tolerance);
  }
  const count = tiles.rows * tiles.columns;
  expect(done.slice(0, done.length / 2)).toEqual(
    Array.from({ length: 9 * count }, (_, i) => ({
      tile: Math.floor(i / 9) + 1,
      tiles: count,
      frame: (i % 9) + 1,
    })),
  );
  expect(backend.counters().liveBytes).toBe(0);
});

/** Noise is the hardest case: neighbouring positions know nothing of each other. */
async function errorOf(
  { latentHeight, latentWidth }: { latentHeight: number; latentWidth: number },
  grids: readonly Tiling[],
): Promise<number[]> {
  const count = config.z_dim * latentHeight * latentWidth;
  const noise = [0, 1].map((stream) => gaussianNoise({ seed: 5, stream, count }));
  const whole = await createVaeDecoder(backend, config, checkpoint, { latentHeight, latentWidth });
  const reference = clipOf(await collect(whole.decodeClip(noise)));
  whole.dispose();
  const errors: number[] = [];
  for (const tiles of grids) {
    const options = { latentHeight, latentWidth, tiles };
    const decoder = await createTiledVaeDecoder(backend, config, checkpoint, options);
    errors.push(relativeRms(clipOf(await collect(decoder.decodeClip(noise))), reference));
  }
  return errors;
}

test('the wider the overlap, the smaller the difference from whole frames', {
  tags: ['full'],
}, async () => {
  const overlaps = [2, 4, 6, 8, 14];
  const errors = await errorOf(
    { latentHeight: 20, latentWidth: 6 },
    overlaps.map((overlap) => ({ rows: 2, columns: 1, overlap })),
  );
  console.log(overlaps.map((o, i) => `${o}: ${errors[i]?.toExponential(1)}`).join(', '));
  const [two = 0, four = 0, six = 0, eight = 0, exact = 0] = errors;
  expect(exactOverlap(config)).toBe(14);
  expect(two).toBeLessThan(5e-2);
  expect(four).toBeLessThan(1e-2);
  expect(six).toBeLessThan(1e-3);
  expect(eight).toBeLessThan(1e-4);
  // What is left is the rounding to 16 bits.
  expect(exact).toBeLessThan(4e-5);
});

test('rows and columns together, and three in a row', { tags: ['full'] }, async () => {
  const errors = await errorOf({ latentHeight: 9, latentWidth: 12 }, [
    { rows: 2, columns: 2, overlap: 4 },
    { rows: 1, columns: 3, overlap: 4 },
  ]);
  console.log(errors.map((error) => error.toExponential(1)).join(', '));
  for (const error of errors) expect(error).toBeLessThan(2e-2);
});

test('a tiled clip of 121 frames at 1280×704 takes 1.55 GB on the CPU', () => {
  const real = { ...config, decoder_base_dim: 256 };
  expect(tiledClipBytes(real, 44, 80, 31)).toBe(121 * 3 * 1280 * 704 * 2 + 62 * 3520 * 1024 * 4);
});

test('a grid that does not fit is refused', async () => {
  const tiles = { rows: 2, columns: 1, overlap: 4 };
  await expect(
    createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles }),
  ).rejects.toThrow('2×1 tiles with an overlap of 4 do not fit 4×6 positions');
});

test.each(['latent part', 'tiles'])('cancelling in the %s frees everything', async (place) => {
  const stop = new AbortController();
  let read = 0;
  const stopping = {
    ...checkpoint,
    // The latent part reads its weights first, in 38 reads.
    read: (name: string) => {
      if (place === 'latent part' && ++read === 20) stop.abort(new Error('enough'));
      return checkpoint.read(name);
    },
  };
  const decoder = await createTiledVaeDecoder(backend, config, stopping, {
    ...size,
    tiles: { rows: 1, columns: 2, overlap: 4 },
    signal: stop.signal,
    onTile: ({ frame }) => {
      if (place === 'tiles' && frame === 3) stop.abort(new Error('enough'));
    },
  });
  await expect(collect(decoder.decodeClip(latents))).rejects.toThrow('enough');
  expect(backend.counters().liveBytes).toBe(0);
});

test('a decode that is left early leaves nothing behind', async () => {
  const decoder = await createTiledVaeDecoder(backend, config, checkpoint, {
    ...size,
    tiles: { rows: 1, columns: 2, overlap: 4 },
  });
  for await (const frame of decoder.decodeClip(latents)) {
    expect(frame.length).toBe(3 * 64 * 96);
    break;
  }
  expect(backend.counters().liveBytes).toBe(0);
  const half = decoder.decodeClip(latents);
  await half.next();
  expect(backend.counters().liveBytes).toBeGreaterThan(0);
  decoder.dispose();
  expect(backend.counters().liveBytes).toBe(0);
});

test('numbers that integers cannot hold are refused: they would be black', async () => {
  const tiles = { rows: 1, columns: 2, overlap: 4 };
  const decoder = await createTiledVaeDecoder(backend, config, checkpoint, { ...size, tiles });
  const broken = latents.map((frame) => frame.slice());
  broken[1]?.fill(Number.NaN, 0, 1);
  await expect(collect(decoder.decodeClip(broken))).rejects.toMatchObject({
    code: 'LATENTS_NOT_FINITE',
    message: expect.stringMatching(/^Frame 2 of the decoded clip has invalid numbers/),
  });
  expect(backend.counters().liveBytes).toBe(0);
});
