import { at, KinoraError } from '../../../contract';
import { CountingBackend, type DeviceBytes, elementCount } from '../../../gpu';
import type { KernelChoice } from '../../../gpu/kernels';
import type { DecodeOption, DecodeTiles, Tiling } from '../../../pipeline/memory/plan';
import { decoderBlocks, type VaeConfig } from '../config';
import { vaeTensors } from '../tensors';
import { createVaeDecoder, type LatentFrameSize } from './decoder';
import { encodeFirstFrame } from './encoder';
import { runLatentPart } from './latent-part';
import { TileNetwork } from './tiled-decoder';
import { canCut, tileSize } from './tiles';
import { derived, type VaeCheckpoint } from './weights';

/*
 * What encoder and decoder take of the device. Both run on the backend that only counts, with weights
 * that have shapes and no content, so plan and network cannot differ.
 */

interface Counted {
  /** The kernels of our own that compute; null where the runtime does, as when absent. */
  readonly kernels?: KernelChoice | null;
  /** See `bandsOf`; for tests. */
  readonly bandBytes?: number;
}

/**
 * Latent frames of a counted clip. The second one meets every state that a decoder can be in; the third
 * one allocates nothing any more.
 */
const countedFrames = 2;

/** Device bytes of the first frame's encoder for latents of one size. */
export async function measureEncoder(
  config: VaeConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
  counted: Counted = {},
): Promise<DeviceBytes> {
  const backend = new CountingBackend(counted.kernels);
  const scale = config.scale_factor_spatial;
  const [height, width] = [latentHeight * scale, latentWidth * scale];
  const image = { height, width, data: new Float32Array(3 * height * width) };
  await encodeFirstFrame(backend, config, emptyCheckpoint(config), image, counted);
  return backend.measured();
}

/** Device bytes of the decoder, in whole frames or in tiles. */
export async function measureDecoder(
  config: VaeConfig,
  size: LatentFrameSize,
  tiles: DecodeTiles,
  counted: Counted = {},
): Promise<DeviceBytes> {
  const [option] = await measureOptions(config, size, [tiles], counted);
  if (!option) throw new TypeError('nothing was measured');
  return option.bytes;
}

async function measureWhole(
  config: VaeConfig,
  size: LatentFrameSize,
  counted: Counted,
): Promise<DeviceBytes> {
  const backend = new CountingBackend(counted.kernels);
  const options = { ...size, ...counted };
  const decoder = await createVaeDecoder(backend, config, emptyCheckpoint(config), options);
  for (const frame of emptyClip(config.z_dim, size)) {
    for await (const _ of decoder.foldedFrames(frame));
  }
  return backend.measured();
}

/** `TiledVaeDecoder` first runs the layers of latent size through the whole clip. */
async function measureLatentPart(
  config: VaeConfig,
  size: LatentFrameSize,
  counted: Counted,
): Promise<DeviceBytes> {
  const backend = new CountingBackend(counted.kernels);
  const clip = emptyClip(config.z_dim, size);
  await runLatentPart(backend, config, emptyCheckpoint(config), clip, { ...size, ...counted });
  return backend.measured();
}

/** Then it runs the others on one tile after another. */
async function measureTile(
  config: VaeConfig,
  tile: LatentFrameSize,
  counted: Counted,
): Promise<DeviceBytes> {
  const backend = new CountingBackend(counted.kernels);
  const options = { ...tile, ...counted };
  const network = await TileNetwork.load(backend, config, emptyCheckpoint(config), options);
  const { in_dim: inputs, out_dim: channels } = at(decoderBlocks(config), 0);
  const [middle, main] = [emptyClip(inputs, tile), emptyClip(channels, tile)];
  const clip = main.map((frame, f) => ({ main: frame, middle: at(middle, f) }));
  for await (const _ of network.foldedFrames(clip));
  return backend.measured();
}

function larger(a: DeviceBytes, b: DeviceBytes): DeviceBytes {
  const most = (part: keyof DeviceBytes) => Math.max(a[part], b[part]);
  return {
    weights: most('weights'),
    activations: most('activations'),
    caches: most('caches'),
    runtime: most('runtime'),
    peak: most('peak'),
    largest: most('largest'),
  };
}

function emptyClip(channels: number, { latentHeight, latentWidth }: LatentFrameSize) {
  const frame = new Float32Array(channels * latentHeight * latentWidth);
  return Array.from({ length: countedFrames }, () => frame);
}

/**
 * The VAE's tensors by their shapes. Kernels have no content, since they would be large and nothing looks
 * at it; they are found under the names of the store, so that nothing is computed from it either.
 */
function emptyCheckpoint(config: VaeConfig): VaeCheckpoint {
  const shapes = vaeTensors(config);
  for (const [name, [filters = 0, inputs = 0, ...kernel]] of [...shapes]) {
    if (!name.endsWith('.weight')) continue;
    const convolution = name.slice(0, -'.weight'.length);
    shapes.set(derived.taps(convolution), [3, filters, inputs, ...kernel.slice(-2)]);
    shapes.set(derived.phases(convolution), [4, filters, inputs, 2, 2]);
    shapes.set(derived.transposed(convolution), [inputs, filters]);
  }
  const shape = (name: string): readonly number[] => {
    const found = shapes.get(name);
    if (!found) throw new KinoraError('TENSOR_MISSING', `The VAE has no tensor ${name}.`);
    return found;
  };
  return {
    has: (name) => shapes.has(name),
    shape,
    bytes: (name) => 4 * elementCount(shape(name)),
    read: async (name) =>
      new Float32Array(name.includes('.weight') ? 0 : elementCount(shape(name))),
    readRows: async () => new Float32Array(0),
  };
}

/**
 * Overlaps that a plan may choose, the better one first, and up to how much work, as a multiple of
 * that for whole frames. With random weights the result differs from that of whole frames by a
 * rel-RMS of 2e-5 with 8 positions and 3e-3 with 4; with 2 it would be 2e-2 and more
 * (`tiled-decoder.test.ts`).
 */
const overlaps = [
  { overlap: 8, mostWork: 2.5 },
  { overlap: 4, mostWork: 5 },
] as const;

/** Each way to decode has tiles of at most so many positions, as a multiple of the one before. */
const shrinkBy = 0.9;

/**
 * The ways to decode that a plan may choose from, the best one first: whole frames, then grids with the
 * wider overlap and then those with the narrower one, those that decode the fewest positions first; what a
 * decode costs is proportional to that. The more tiles a grid has the less memory it takes.
 */
function tilings({ latentHeight, latentWidth }: LatentFrameSize): DecodeTiles[] {
  const chosen: DecodeTiles[] = ['full'];
  let smallest = latentHeight * latentWidth;
  for (const { overlap, mostWork } of overlaps) {
    const grids: { tiling: Tiling; work: number; positions: number }[] = [];
    for (let rows = 1; rows < latentHeight; rows++) {
      for (let columns = 1; columns < latentWidth; columns++) {
        const tiling = { rows, columns, overlap };
        const tile = tileSize(latentHeight, latentWidth, tiling);
        const positions = tile.latentHeight * tile.latentWidth;
        const work = decodeWork({ height: latentHeight, width: latentWidth }, tiling);
        const cut = canCut(latentHeight, rows, overlap) && canCut(latentWidth, columns, overlap);
        // One tile would be untiled by its number and other by its bits.
        if (cut && work <= mostWork && rows * columns > 1) grids.push({ tiling, work, positions });
      }
    }
    // Of equal work the fewer tiles.
    const count = ({ tiling }: { tiling: Tiling }) => tiling.rows * tiling.columns;
    grids.sort((a, b) => a.work - b.work || count(a) - count(b));
    for (const { tiling, positions } of grids) {
      if (positions > shrinkBy * smallest) continue;
      chosen.push(tiling);
      smallest = positions;
    }
  }
  return chosen;
}

/** What a decode costs, as a multiple of that of whole frames: positions of all tiles together. */
export function decodeWork(
  { height, width }: { readonly height: number; readonly width: number },
  tiles: DecodeTiles,
): number {
  if (tiles === 'full') return 1;
  const tile = tileSize(height, width, tiles);
  const positions = tiles.rows * tiles.columns * tile.latentHeight * tile.latentWidth;
  return positions / (height * width);
}

const known = new Map<string, Promise<readonly DecodeOption[]>>();

/** {@link tilings} with the bytes that each takes; measured once per model, size and choice of kernels. */
export function decodeOptions(
  config: VaeConfig,
  size: LatentFrameSize,
  kernels: KernelChoice | null = null,
): Promise<readonly DecodeOption[]> {
  const { latentHeight, latentWidth } = size;
  const key = JSON.stringify([config, latentHeight, latentWidth, kernels]);
  const options = known.get(key) ?? measureOptions(config, size, tilings(size), { kernels });
  known.set(key, options);
  return options;
}

async function measureOptions(
  config: VaeConfig,
  size: LatentFrameSize,
  ways: readonly DecodeTiles[],
  counted: Counted = {},
): Promise<DecodeOption[]> {
  const latentPart = await measureLatentPart(config, size, counted);
  const options: DecodeOption[] = [];
  const { latentHeight: height, latentWidth: width } = size;
  for (const tiles of ways) {
    const bytes =
      tiles === 'full'
        ? await measureWhole(config, size, counted)
        : larger(latentPart, await measureTile(config, tileSize(height, width, tiles), counted));
    options.push({ tiles, bytes, work: decodeWork({ height, width }, tiles) });
  }
  return options;
}
