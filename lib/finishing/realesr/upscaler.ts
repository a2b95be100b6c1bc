import { KinoraError, type PixelSize } from '../../contract';
import type { Backend, ImageExecutor } from '../../gpu';
import type { Graph } from '../../graph';
import { openImages } from '../../models/wan/vae/vae-executor';
import { measureGraphs } from '../../models/wan/vae/vae-memory';
import type { Frame } from '../../pipeline/latents';
import {
  type Checkpoint,
  checkpointOf,
  locateTensors,
  openTensorFile,
  type WeightFile,
} from '../../weights';
import { type CompactConfig, compactGraph, type Factor } from './upscaler-network';
import { compactConfig, compactWeights, plainNames } from './upscaler-weights';

/** Makes frames larger, one after another. */
export interface Upscaler {
  /**
   * A frame of `factor` times the width and height. Its values may be a little beyond −1…1: what makes bytes of them
   * limits them.
   *
   * @param factor 4 as the network is trained; 2 is the mean of 2×2 of its pixels
   * @throws the signal's reason soon after it aborts
   * @throws Refusal where kernels of our own are to compute and do not
   * @throws KinoraError `OUT_OF_MEMORY`, `DEVICE_LOST`
   */
  enlarge(frame: Frame, factor: Factor, signal: AbortSignal): Promise<Frame>;
  /**
   * Requires that the device has room for frames of this size, in whatever strips. Nothing stays there.
   *
   * @throws KinoraError `OUT_OF_MEMORY`
   * @throws Refusal where kernels of our own are to compute and do not
   */
  requireRoom(size: PixelSize, factor: Factor): Promise<void>;
  /** Frees the device's memory. The next frame takes it again. */
  dispose(): void;
}

/**
 * Opens realesr-general-x4v3, or another SRVGGNetCompact of factor 4. Nothing is on the device before the first frame.
 *
 * @param file the authors' own, or safetensors with the tensors `body.N…`
 * @throws KinoraError `MODEL_FILE_INVALID`, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export async function openUpscaler(backend: Backend, file: WeightFile): Promise<Upscaler> {
  const tensors = locateTensors([await openTensorFile(file)]);
  const checkpoint = plainNames(checkpointOf(file.name, tensors));
  return new CompactUpscaler(backend, checkpoint, compactConfig(checkpoint));
}

/** The network on the device, for frames of one size. */
interface Loaded {
  readonly key: string;
  readonly signal: AbortSignal;
  readonly graph: Graph;
  /** Of each strip that the network computes: all of the frame, or more than the `step` that it keeps. */
  readonly rows: number;
  readonly step: number;
  readonly images: ImageExecutor;
}

class CompactUpscaler implements Upscaler {
  #loaded: Loaded | null = null;

  constructor(
    readonly backend: Backend,
    readonly checkpoint: Checkpoint,
    readonly config: CompactConfig,
  ) {}

  async enlarge(frame: Frame, factor: Factor, signal: AbortSignal): Promise<Frame> {
    const { width, height, data } = frame;
    if (data.length !== 3 * width * height) {
      throw new TypeError(`${data.length} numbers are no frame of ${width}×${height}`);
    }
    const large = { width: factor * width, height: factor * height };
    const picture = new Float32Array(3 * large.width * large.height);
    try {
      const { rows, step, graph, images } = await this.#load(frame, factor, signal);
      for (let row = 0; row < height; row += step) {
        const start = Math.min(Math.max(0, row - this.config.convolutions), height - rows);
        const image = stripOf(frame, start, rows); // [rows, W, 4]
        for await (const folded of images.frames(graph, { image })) {
          const kept = { first: row, start, count: Math.min(step, height - row) };
          unfold(folded, kept, width, factor, { ...large, data: picture });
        }
      }
      return { ...large, data: picture };
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  async requireRoom(size: PixelSize, factor: Factor): Promise<void> {
    const least = stepsOf(size.height, this.config).at(-1) ?? 1;
    if (!(await this.#fits(size, factor, least))) throw noRoom(size);
  }

  async #load({ width, height }: Frame, factor: Factor, signal: AbortSignal): Promise<Loaded> {
    const key = `${width}×${height} ${factor}`;
    if (this.#loaded?.key === key && this.#loaded.signal === signal) return this.#loaded;
    this.dispose();
    for (const step of stepsOf(height, this.config)) {
      signal.throwIfAborted();
      const fit = await this.#fits({ width, height }, factor, step);
      if (fit) {
        const { graph, rows, weights } = fit;
        const images = await openImages(this.backend, [graph], weights, { signal });
        this.#loaded = { key, signal, graph, rows, step, images };
        return this.#loaded;
      }
    }
    throw noRoom({ width, height });
  }

  /** The network for strips of which `step` rows are kept; null where the device has no room for one. */
  async #fits({ width, height }: PixelSize, factor: Factor, step: number) {
    const { backend, checkpoint, config } = this;
    const weights = compactWeights(checkpoint, config, factor);
    const { kernels, compute } = backend;
    // Kernels bind whole images.
    const { bindingBytes } = compute?.limits ?? { bindingBytes: Number.POSITIVE_INFINITY };
    const largestBuffer = Math.min(backend.maxBufferBytes, bindingBytes);
    // What a strip's edge changes reaches as far as there are convolutions.
    const rows = step === height ? height : Math.min(height, step + 2 * config.convolutions);
    const graph = compactGraph(config, rows, width, factor);
    const measured = { kernels, compute, largestBuffer };
    const { peak, largest } = await measureGraphs([graph], weights, measured);
    const fits = largest <= largestBuffer && (await backend.canHold(peak));
    return fits ? { graph, rows, weights } : null;
  }

  dispose(): void {
    this.#loaded?.images.dispose();
    this.#loaded = null;
  }
}

/**
 * Rows that strips keep, the most first. With fewer than they see beyond them, memory would hardly shrink and the work
 * would multiply.
 */
function stepsOf(height: number, { convolutions }: CompactConfig): number[] {
  const steps = [height];
  for (let step = height; step > convolutions; ) {
    step = Math.ceil(step / 2);
    steps.push(step);
  }
  return steps;
}

function noRoom({ width, height }: PixelSize): KinoraError {
  const sentence = `The device has no room to upscale ${width}×${height} with Real-ESRGAN.`;
  return new KinoraError('OUT_OF_MEMORY', sentence, {
    remedy: 'Upscale without it, which takes no memory of the GPU, or on the CPU.',
  });
}

/** Rows of a frame as the network takes them: [rows, W, 4] in 0…1, its last channel zero. */
function stripOf({ data, width, height }: Frame, start: number, rows: number): Float32Array {
  const strip = new Float32Array(rows * width * 4);
  for (let c = 0; c < 3; c++) {
    const from = (c * height + start) * width;
    for (let i = 0; i < rows * width; i++) {
      strip[4 * i + c] = ((data[from + i] as number) + 1) / 2;
    }
  }
  return strip;
}

/** Rows of a frame that a strip gives. */
interface Kept {
  readonly first: number;
  readonly count: number;
  /** Row of the frame that is the strip's first. */
  readonly start: number;
}

/** Writes rows of a strip's picture [rows, W, 3·f²] in 0…1 into a frame. */
function unfold(
  folded: Float32Array,
  { first, count, start }: Kept,
  width: number,
  factor: Factor,
  to: Frame,
): void {
  const area = factor ** 2;
  for (let c = 0; c < 3; c++) {
    for (let y = first * factor; y < (first + count) * factor; y++) {
      const line = (c * to.height + y) * to.width;
      const source = (Math.floor(y / factor) - start) * width * 3 * area + c * area;
      const inBlock = (y % factor) * factor;
      for (let x = 0; x < to.width; x++) {
        const column = Math.floor(x / factor);
        const value = folded[source + column * 3 * area + inBlock + (x % factor)] as number;
        to.data[line + x] = 2 * value - 1;
      }
    }
  }
}
