import { KinoraError } from '../../../contract';
import {
  type Compute,
  CountingBackend,
  type DeviceBytes,
  elementCount,
  type ImageProgram,
  placeholder,
  Refusal,
  readsTogether,
} from '../../../gpu';
import { type Kernel, type KernelChoice, packKernels, type Storage } from '../../../gpu/kernels';
import type { Graph } from '../../../graph';
import type { DecodeOption, DecodeTiles, Tiling } from '../../../pipeline/memory/memory-plan';
import type { VaeConfig } from '../config-schemas';
import { vaeTensors } from '../wan-tensors';
import { decoderGraphs, type LatentFrameSize } from './decoder';
import { clipEncoderGraphs } from './encoder';
import { kernelWeightSizes, largestSource } from './kernel-weights';
import { tileGraphs } from './tiled-decoder';
import { canCut, tileSize } from './tiles';
import {
  compileImages,
  type ImageKernels,
  imageKernels,
  matchesOf,
  openImages,
} from './vae-executor';
import { encoderFrame, latentGraphs } from './vae-network';
import { derived, type VaeCheckpoint } from './vae-weights';

/*
 * What encoder and decoders take of the device. With kernels of our own it is what their graphs are compiled to. What
 * the runtime takes is simulated: graphs run on the backend that only counts, with weights that have shapes and no content.
 */

/** The kernels and the device of a count. */
export interface VaePlanOptions {
  /** The kernels of our own; null where the runtime computes, as when absent. */
  readonly kernels?: KernelChoice | null;
  /** The device that compiles them; one without limits when absent. */
  readonly compute?: Compute | null | undefined;
  /** Most bytes that the device takes in one buffer; any number of them when absent. */
  readonly largestBuffer?: number | undefined;
}

/**
 * Device bytes of the encoder for latents of one size: of the first frame, or of clips where it has no shortcuts.
 *
 * @throws Refusal where kernels of our own are to compute and do not
 */
export function measureEncoder(
  config: VaeConfig,
  { latentHeight, latentWidth }: LatentFrameSize,
  options: VaePlanOptions = {},
): Promise<DeviceBytes> {
  const graphs = config.is_residual
    ? [encoderFrame(config, latentHeight, latentWidth)]
    : clipEncoderGraphs(config, latentHeight, latentWidth);
  return measureGraphs(graphs, emptyCheckpoint(config), { ...options, storage: 'f32' });
}

/**
 * Device bytes of graphs that a clip's frames go through in this order: with the second latent frame a decoder has met
 * every state that it can be in.
 *
 * @param checkpoint has shapes; the content is not used
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function measureGraphs(
  graphs: readonly Graph[],
  checkpoint: VaeCheckpoint,
  options: VaePlanOptions & { readonly storage?: Storage } = {},
): Promise<DeviceBytes> {
  const kernels = imageKernels(options.kernels);
  if (!kernels) return countGraphs([graphs], checkpoint);
  const { storage = kernels.storage } = options;
  const planner = new ImagePlanner({ ...kernels, storage }, options);
  const bytes = await planner.bytes(graphs);
  await planner.compileKernels();
  return bytes;
}

/** Memory of the runtime for graphs, one group of them after another. */
async function countGraphs(
  groups: readonly (readonly Graph[])[],
  checkpoint: VaeCheckpoint,
): Promise<DeviceBytes> {
  const backend = new CountingBackend();
  for (const graphs of groups) {
    const images = await openImages(backend, graphs, checkpoint, {});
    for (const graph of graphs) {
      const inputs = graph.values.flatMap(({ call, dims }) =>
        call.op === 'input' ? [[call.name, new Float32Array(elementCount(dims.map(Number)))]] : [],
      );
      for await (const _ of images.frames(graph, Object.fromEntries(inputs)));
    }
    images.dispose();
  }
  return backend.measured();
}

/** Device bytes of the decoder, in whole frames or in tiles. */
export async function measureDecoder(
  config: VaeConfig,
  size: LatentFrameSize,
  tiles: DecodeTiles,
  options: VaePlanOptions = {},
): Promise<DeviceBytes> {
  const [option] = await measureOptions(config, size, [tiles], options);
  if (!option) throw new TypeError('nothing was measured');
  return option.bytes;
}

/** Memory of graphs of images as kernels of our own. */
class ImagePlanner {
  readonly #kernels = new Map<Kernel, Graph>();

  constructor(
    readonly kernels: ImageKernels,
    readonly options: VaePlanOptions,
  ) {}

  /** Bytes of graphs that a clip's frames go through in this order. */
  async bytes(graphs: readonly Graph[]): Promise<DeviceBytes> {
    const counting = new CountingBackend();
    const { compute, largestBuffer } = this.options;
    const limits = (compute ?? counting.compute).limits;
    const program: ImageProgram = compileImages(this.kernels, limits, graphs, largestBuffer);
    for (const [kernel, graph] of program.kernels) this.#kernels.set(kernel, graph);
    await counting.compute.dispatch([]);
    for (const graph of new Set(graphs)) {
      const staged: Promise<unknown>[] = [];
      for (const { dims } of graph.outputs.values()) {
        staged.push(counting.stage(placeholder('float32', dims.map(Number))));
        if (!readsTogether(graph)) await counting.collect(staged.splice(0));
      }
      await counting.collect(staged);
    }
    const { runtime } = counting.measured();

    const matches = [...matchesOf(graphs).values()];
    const ofWeights = matches.flatMap((match) =>
      Object.values(kernelWeightSizes(match, this.kernels.storage)).map(({ bytes }) => bytes),
    );
    const raw = Math.max(...matches.map(largestSource));
    const [weights, activations] = [sum(ofWeights), sum(program.buffers)];
    const caches = sum(program.frames);
    // While they are loaded, weights are on the device in a file's order, too.
    const peak = weights + runtime + Math.max(raw, activations + caches);
    const largest = Math.max(raw, ...ofWeights, ...program.buffers, ...program.frames);
    return { weights, activations, caches, runtime, peak, largest };
  }

  /** Compiles what was planned, so that a device that does not is known before a run. @throws Refusal */
  async compileKernels(): Promise<void> {
    const { compute } = this.options;
    const [failure] = (await compute?.compile([...this.#kernels.keys(), ...packKernels])) ?? [];
    if (!failure) return;
    const { kernel, reason } = failure;
    throw new Refusal(this.#kernels.get(kernel)?.name ?? '', kernel.name, `fails: ${reason}`);
  }
}

function sum(bytes: readonly number[]): number {
  return bytes.reduce((total, each) => total + each, 0);
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
    const dims = shapes.get(name);
    if (!dims) throw new KinoraError('TENSOR_MISSING', `The VAE has no tensor ${name}.`);
    return dims;
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
    // At equal work, fewer tiles come first.
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

/** Cost of a decode, as a multiple of that of whole frames: positions of all tiles together. */
export function decodeWork(
  { height, width }: { readonly height: number; readonly width: number },
  tiles: DecodeTiles,
): number {
  if (tiles === 'full') return 1;
  const tile = tileSize(height, width, tiles);
  const positions = tiles.rows * tiles.columns * tile.latentHeight * tile.latentWidth;
  return positions / (height * width);
}

const known = new Map<string, readonly DecodeOption[]>();

/**
 * {@link tilings} with the bytes that each takes.
 *
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function decodeOptions(
  config: VaeConfig,
  size: LatentFrameSize,
  options: VaePlanOptions = {},
): Promise<readonly DecodeOption[]> {
  const { latentHeight, latentWidth } = size;
  const { kernels = null, compute, largestBuffer } = options;
  const key = JSON.stringify([config, latentHeight, latentWidth, kernels]);
  // Limits and programs of a device are asked for anew.
  const isKnown = !imageKernels(kernels) || (!compute && !largestBuffer);
  const measured =
    (isKnown ? known.get(key) : undefined) ??
    (await measureOptions(config, size, tilings(size), options));
  if (isKnown) known.set(key, measured);
  return measured;
}

async function measureOptions(
  config: VaeConfig,
  size: LatentFrameSize,
  ways: readonly DecodeTiles[],
  options: VaePlanOptions,
): Promise<DecodeOption[]> {
  const { latentHeight: height, latentWidth: width } = size;
  const kernels = imageKernels(options.kernels);
  const planner = kernels && new ImagePlanner(kernels, options);
  const checkpoint = emptyCheckpoint(config);
  const measure = (graphs: readonly Graph[]) =>
    planner ? planner.bytes(graphs) : countGraphs([graphs], checkpoint);
  // In tiles the layers of latent size first run through the whole clip, one group after another.
  const { middle, main } = latentGraphs(config, height, width);
  const groups = [...middle, ...main].map((graph) => [graph, graph]);
  const latentPart = planner
    ? (await Promise.all(groups.map(measure))).reduce(larger)
    : await countGraphs(groups, checkpoint);
  const measured: DecodeOption[] = [];
  for (const tiles of ways) {
    const bytes =
      tiles === 'full'
        ? await measure(decoderGraphs(config, size))
        : larger(latentPart, await measure(tileGraphs(config, tileSize(height, width, tiles))));
    measured.push({ tiles, bytes, work: decodeWork({ height, width }, tiles) });
  }
  await planner?.compileKernels();
  return measured;
}
