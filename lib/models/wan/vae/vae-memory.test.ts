/** @module-tag full */
import * as ort from 'onnxruntime-web';
import { describe, expect, test } from 'vitest';
import {
  type Backend,
  CountingBackend,
  type DeviceBytes,
  type Runtime,
  WasmBackend,
} from '../../../gpu';
import type { KernelChoice } from '../../../gpu/kernels';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import {
  createTiledVaeDecoder,
  createVaeDecoder,
  decodeOptions,
  decodeWork,
  encodeFirstFrame,
  measureDecoder,
  measureEncoder,
} from './';
import { collect, decodeAll, latentsOf, openGoldens } from './testing/goldens';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const { config: tiny, checkpoint, size, image } = goldens;

/** Wan2.2's own VAE at 1280×704. */
const real = { ...tiny, base_dim: 160, decoder_base_dim: 256 };
const realSize = { latentHeight: 44, latentWidth: 80 };
const gibibyte = 2 ** 30;

/** Kernels of our own for convolutions only. */
const convolutions = (pixels: number, filters: number): KernelChoice => ({
  mode: 'exact',
  linear: null,
  attention: null,
  convolution: { pixels, filters, threadPixels: 8, threadFilters: 8 },
});
const kernels = convolutions(128, 128);

describe('the VAE of the 5B at 1280×704', () => {
  test('decoder and encoder fit', async () => {
    const decoder = await measureDecoder(real, realSize, 'full');
    const encoder = await measureEncoder(real, realSize);
    console.table(
      Object.fromEntries(
        Object.entries({ decoder, encoder }).map(([name, bytes]) => [name, gibibytes(bytes)]),
      ),
    );
    expect(decoder.weights / gibibyte).toBeCloseTo(2.13, 1);
    expect(decoder.peak).toBeLessThan(15.6 * gibibyte);
    expect(decoder.largest / gibibyte).toBeCloseTo(0.43, 2);
    expect(encoder.peak).toBeLessThan(2.7 * gibibyte);
  });

  test('kernels of our own need a third of it', async () => {
    const bytes = await measureDecoder(real, realSize, 'full', { kernels });
    const encoder = await measureEncoder(real, realSize, { kernels });
    console.table({ decoder: gibibytes(bytes), encoder: gibibytes(encoder) });
    expect(bytes.caches / gibibyte).toBeLessThan(3.44);
    expect(bytes.peak).toBeLessThan(5 * gibibyte);
    expect(encoder.peak).toBeLessThan(1.35 * gibibyte);
    const options = await decodeOptions(real, realSize, { kernels });
    expect(options.at(-1)?.bytes.peak).toBeLessThan(1.5 * gibibyte);
  });

  test('the ways to decode take ever less memory and ever more work', async () => {
    const options = await decodeOptions(real, realSize);
    const rows = options.map(({ tiles, bytes }) => ({
      tiles: tiles === 'full' ? tiles : `${tiles.rows}×${tiles.columns}, ${tiles.overlap} shared`,
      work: Number(decodeWork({ height: 44, width: 80 }, tiles).toFixed(2)),
      ...gibibytes(bytes),
    }));
    console.table(rows);
    expect(options[0]?.tiles).toBe('full');
    // The first thing to try: 1.10 times the work.
    expect(options[1]?.tiles).toEqual({ rows: 1, columns: 2, overlap: 8 });
    expect(options[1]?.bytes.peak).toBeLessThan(8.4 * gibibyte);
    expect(options.at(-1)?.bytes.peak).toBeLessThan(1.6 * gibibyte);
    // A decode that differs from that of whole frames has more than one tile.
    for (const { tiles } of options.slice(1)) {
      if (tiles !== 'full') expect(tiles.rows * tiles.columns).toBeGreaterThan(1);
    }
    for (const overlap of [8, 4]) {
      const alike = options.filter(({ tiles }) => tiles !== 'full' && tiles.overlap === overlap);
      const work = alike.map(({ tiles }) => decodeWork({ height: 44, width: 80 }, tiles));
      expect(work).toEqual(work.toSorted((a, b) => a - b));
      expect(alike.length).toBeGreaterThan(5);
    }
    const peaks = options.map(({ bytes }) => bytes.peak);
    // What the runtime keeps depends on the sizes of its buffers, so that the order by positions may differ slightly.
    for (const [i, peak] of peaks.slice(1).entries()) {
      expect(peak).toBeLessThan(1.1 * (peaks[i] ?? Number.NaN));
    }
  });
});

test('the tiny model can be tiled as well', async () => {
  const options = await decodeOptions(tiny, { latentHeight: 4, latentWidth: 6 });
  expect(options.map(({ tiles }) => tiles)).toEqual(['full', { rows: 1, columns: 2, overlap: 4 }]);
  const [whole, tiled] = options.map(({ bytes }) => bytes.peak);
  expect(tiled).toBeLessThan(whole ?? 0);
});

test('all kernels of the decoder are compiled before it decodes', async () => {
  // No tile is too wide for the few filters of the tiny model.
  const backend = new CountingBackend(convolutions(64, 16));
  const compiled = new Set<string>();
  const used = new Set<string>();
  const { compile, dispatch } = backend.compute;
  backend.compute.compile = (list) => {
    for (const { name } of list) compiled.add(name);
    return compile(list);
  };
  backend.compute.dispatch = (jobs) => {
    for (const { kernel } of jobs) used.add(kernel.name);
    return dispatch(jobs);
  };
  const decoder = await createVaeDecoder(backend, tiny, checkpoint, size);
  await decodeAll(decoder, goldens);
  expect(compiled).toEqual(used);
});

/** Runs something by the runtime on the CPU and counts what it takes; its own part is not seen there. */
async function counted(run: (backend: Backend) => Promise<void>) {
  const backend = new WasmBackend(() => ort as unknown as Runtime);
  backend.runtimeOnly = true;
  await run(backend);
  const { categories } = backend.counters();
  await backend.dispose();
  return {
    weights: categories.weights?.peak,
    caches: categories.caches?.peak,
    activations: categories.activations?.peak,
  };
}

const ownPart = ({ weights, caches, activations }: DeviceBytes) => ({
  weights,
  caches,
  activations,
});

test('the plan is what the decoder takes, and no clip takes more', async () => {
  const took = await counted(async (backend) => {
    const decoder = await createVaeDecoder(backend, tiny, checkpoint, size);
    await decodeAll(decoder, goldens);
    decoder.dispose();
  });
  expect(took).toEqual(ownPart(await measureDecoder(tiny, size, 'full')));
});

test('the plan is what a tiled decode takes', async () => {
  const tiles = { rows: 1, columns: 2, overlap: 4 };
  const took = await counted(async (backend) => {
    const decoder = await createTiledVaeDecoder(backend, tiny, checkpoint, { ...size, tiles });
    await collect(decoder.decodeClip(latentsOf(goldens)));
  });
  expect(took).toEqual(ownPart(await measureDecoder(tiny, size, tiles)));
});

test('the plan is what the encoder takes', async () => {
  const took = await counted(async (backend) => {
    await encodeFirstFrame(backend, tiny, checkpoint, image);
  });
  expect(took).toEqual(ownPart(await measureEncoder(tiny, size)));
});

function gibibytes(bytes: DeviceBytes): Record<string, string> {
  return Object.fromEntries(
    Object.entries(bytes).map(([part, value]) => [part, (value / gibibyte).toFixed(2)]),
  );
}
