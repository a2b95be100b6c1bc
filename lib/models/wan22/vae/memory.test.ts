import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { CountingBackend, type Runtime, WasmBackend } from '../../../gpu';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import {
  createTiledVaeDecoder,
  createVaeDecoder,
  encodeFirstFrame,
  tiledDecoderMemory,
  type VaeMemory,
  vaeDecoderMemory,
  vaeEncoderMemory,
} from '.';
import { collect, decodeAll, openGoldens } from './testing';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const { config, checkpoint, size, image } = goldens;

/** Wan2.2's own VAE (reference §1.4). */
const real = { ...config, base_dim: 160, decoder_base_dim: 256 };
const gibibyte = 2 ** 30;

function table(memory: VaeMemory) {
  return Object.fromEntries(
    Object.entries(memory).map(([part, bytes]) => [part, `${(bytes / gibibyte).toFixed(2)} GiB`]),
  );
}

test('the real decoder and encoder fit at 1280×704', () => {
  const decoder = vaeDecoderMemory(real, 44, 80);
  const encoder = vaeEncoderMemory(real, 44, 80);
  console.table({ decoder: table(decoder), encoder: table(encoder) });
  expect(decoder.weights / gibibyte).toBeCloseTo(2.13, 1);
  expect(decoder.total).toBeLessThan(10 * gibibyte);
  expect(encoder.total).toBeLessThan(2 * gibibyte);
});

const bandSizes = [undefined, 20_000, 4096] as const;

test.each(bandSizes)('the plan is what the decoder takes, bands of %s bytes', async (bandBytes) => {
  const backend = new WasmBackend(ort as unknown as Runtime);
  const { latentHeight, latentWidth } = size;
  const options = { ...size, ...(bandBytes !== undefined && { bandBytes }) };
  const decoder = await createVaeDecoder(backend, config, checkpoint, options);
  await decodeAll(decoder, goldens);
  const { categories } = backend.counters();
  const plan = vaeDecoderMemory(config, latentHeight, latentWidth, bandBytes);
  expect({
    weights: categories.weights?.peak,
    caches: categories.caches?.peak,
    images: categories.activations?.peak,
  }).toEqual({ weights: plan.weights, caches: plan.caches, images: plan.images });
  decoder.dispose();
  await backend.dispose();
});

test.each(bandSizes)('the plan is what the encoder takes, bands of %s bytes', async (bandBytes) => {
  const backend = new WasmBackend(ort as unknown as Runtime);
  const { latentHeight, latentWidth } = size;
  const options = bandBytes === undefined ? {} : { bandBytes };
  await encodeFirstFrame(backend, config, checkpoint, image, options);
  const { categories } = backend.counters();
  const plan = vaeEncoderMemory(config, latentHeight, latentWidth, bandBytes);
  expect({
    weights: categories.weights?.peak,
    images: categories.activations?.peak,
  }).toEqual({ weights: plan.weights, images: plan.images });
  await backend.dispose();
});

test.each([
  { height: 4, width: 6, bandBytes: 2 ** 24 },
  { height: 16, width: 12, bandBytes: 2 ** 24 },
  { height: 16, width: 12, bandBytes: 2 ** 17 },
])('the runtime takes no more than planned at $height×$width', async (shape) => {
  const { height, width, bandBytes } = shape;
  const options = { latentHeight: height, latentWidth: width, bandBytes };
  const latents = [0, 1].map(() => new Float32Array(config.z_dim * height * width));
  const whole = new CountingBackend();
  await collect((await createVaeDecoder(whole, config, checkpoint, options)).decodeClip(latents));
  const tiles = { rows: 1, columns: 2, overlap: 4 };
  const tiled = new CountingBackend();
  const decoder = await createTiledVaeDecoder(tiled, config, checkpoint, { ...options, tiles });
  await collect(decoder.decodeClip(latents));
  const plans = [
    vaeDecoderMemory(config, height, width, bandBytes),
    tiledDecoderMemory(config, height, width, tiles, bandBytes),
  ] as const;
  const planned = [plans[0].total, plans[1].total] as const;
  expect(plans[0].largest).toBe(whole.largestBuffer);
  expect(plans[1].largest).toBeGreaterThanOrEqual(tiled.largestBuffer);
  console.log(whole.peakBytes, planned[0], tiled.peakBytes, planned[1]);
  expect(whole.peakBytes).toBeLessThanOrEqual(planned[0]);
  expect(tiled.peakBytes).toBeLessThanOrEqual(planned[1]);
  expect(whole.peakBytes / planned[0]).toBeGreaterThan(0.6);
});
