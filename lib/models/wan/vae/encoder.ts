import { at } from '../../../contract';
import { type Backend, elementCount, type ImageExecutor } from '../../../gpu';
import type { Graph } from '../../../graph';
import type { VaeConfig } from '../config-schemas';
import { foldPixels } from './pixels';
import { openImages } from './vae-executor';
import { type EncoderPart, encoderFrame, encoderParts, pixelChannels } from './vae-network';
import { derived, type VaeCheckpoint, type VaeLoadOptions } from './vae-weights';

/** Planar RGB [3, height, width] in −1…1; sizes are multiples of the VAE's spatial factor. */
export interface PlanarImage {
  readonly data: Float32Array;
  readonly width: number;
  readonly height: number;
}

/**
 * Encodes the first frame of a clip. It has no past, so of every 3×3×3 kernel only the last time tap
 * sees anything and the encoder is a 2-D network (`vae-network.ts`), in f32: that of {@link encodeClip} for a third of the
 * work. Everything is freed when it returns or throws.
 *
 * @returns latent [z, 1, H/16, W/16] in model space: (mean of the moments − latents_mean) / latents_std
 * @throws TypeError when the image has another size than it says or one that the VAE cannot take
 */
export async function encodeFirstFrame(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  image: PlanarImage,
  options: VaeLoadOptions = {},
): Promise<Float32Array<ArrayBuffer>> {
  const { data, width, height } = image;
  const factor = config.scale_factor_spatial;
  requireSteps(image, factor);
  const graph = encoderFrame(config, height / factor, width / factor);
  const images = await openImages(backend, [graph], checkpoint, { ...options, storage: 'f32' });
  try {
    const folded = foldPixels(data, height, width, config.patch_size, 'column-row');
    const { value: mean } = await images.frames(graph, { image: folded }).next();
    if (!mean) throw new TypeError('the encoder has no result');
    return normalised(mean, config);
  } finally {
    images.dispose();
  }
}

function requireSteps({ data, width, height }: PlanarImage, factor: number): void {
  if (data.length !== 3 * width * height || width % factor !== 0 || height % factor !== 0) {
    throw new TypeError(`not an image in steps of ${factor} pixels: ${width}×${height}`);
  }
}

/** [count, C, size] with zeros as further channels. */
function paddedChannels(
  data: Float32Array,
  count: number,
  size: number,
  channels: number,
): Float32Array {
  const own = data.length / count;
  const out = new Float32Array(count * channels * size);
  for (let i = 0; i < count; i++) {
    out.set(data.subarray(i * own, (i + 1) * own), i * channels * size);
  }
  return out;
}

/** The VAE's tensors with filters of the first convolution for so many channels. */
function paddedInput(checkpoint: VaeCheckpoint, channels: number): VaeCheckpoint {
  const name = 'encoder.conv_in';
  // The place of the channels among the sizes of the filters.
  const axes = new Map([
    [`${name}.weight`, 1],
    [derived.taps(name), 2],
  ]);
  const read = async (tensor: string) => {
    const axis = axes.get(tensor);
    const data = await checkpoint.read(tensor);
    if (axis === undefined) return data;
    const shape = checkpoint.shape(tensor);
    const inner = elementCount(shape.slice(axis + 1));
    return paddedChannels(data, elementCount(shape.slice(0, axis)), inner, channels);
  };
  const shape = (tensor: string) => {
    const axis = axes.get(tensor);
    return checkpoint.shape(tensor).map((size, i) => (i === axis ? channels : size));
  };
  return {
    has: (tensor) => checkpoint.has(tensor),
    bytes: (tensor) => checkpoint.bytes(tensor),
    shape,
    read,
    async readRows(tensor, rows) {
      if (!axes.has(tensor)) return checkpoint.readRows(tensor, rows);
      const data = await read(tensor);
      const width = elementCount(shape(tensor).slice(1));
      const out = new Float32Array(rows.length * width);
      for (const [i, row] of rows.entries()) {
        out.set(data.subarray(row * width, (row + 1) * width), i * width);
      }
      return out;
    },
  };
}

/** A level of the encoder and what is known of the frames that went through it. */
class LevelRun {
  /** Frames that it was given, and the number of the last one that differed from the one before. */
  #count = 0;
  #changed = 0;
  /** The last of them that it computed. */
  #computed = -1;
  #input: Float32Array | undefined;
  #output: Float32Array<ArrayBuffer> | undefined;

  constructor(
    readonly images: ImageExecutor,
    readonly part: EncoderPart,
  ) {}

  /**
   * Takes the frames of one latent frame. Where all that a result depends on has been the same for long enough, it is
   * the last one again: then nothing is computed.
   */
  async next(frames: readonly Float32Array[]): Promise<Float32Array<ArrayBuffer>[]> {
    const [first, later] = this.part.graphs;
    const graph = this.#count === 0 ? first : later;
    for (const frame of frames) {
      if (frame !== this.#input) this.#changed = this.#count;
      this.#input = frame;
      this.#count += 1;
    }
    const { length } = [...graph.outputs];
    if (this.#output && this.#computed >= this.#changed + this.part.reach) {
      return new Array<Float32Array<ArrayBuffer>>(length).fill(this.#output);
    }
    this.#computed = this.#count - 1;
    const inputs = Object.fromEntries(frames.map((frame, f) => [`frame ${f}`, frame]));
    const results: Float32Array<ArrayBuffer>[] = [];
    for await (const result of this.images.frames(graph, inputs)) results.push(result);
    this.#output = results.at(-1);
    return results;
  }
}

/** The graphs of a clip's encoder, in the order in which its frames go through them until nothing new comes. */
export function clipEncoderGraphs(config: VaeConfig, h: number, w: number): Graph[] {
  const parts = encoderParts(config, h, w);
  const later = parts.map(({ graphs }) => graphs[1]);
  return [...parts.map(({ graphs }) => graphs[0]), ...later, ...later, ...later];
}

/**
 * Encodes a clip that shows pictures at some frames and grey at all others, in f32. Grey frames behind a picture make
 * ever less of a difference, level by level, and soon exactly none; from there on a level repeats its last result.
 *
 * @param pictures by frame; the first frame is one of them
 * @param latentFrames frames of the latents
 * @returns latents [z, F, h, w] in model space
 * @throws TypeError when pictures differ in size, or have one that the VAE cannot take
 */
export async function encodeClip(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  pictures: ReadonlyMap<number, PlanarImage>,
  latentFrames: number,
  options: VaeLoadOptions = {},
): Promise<Float32Array<ArrayBuffer>> {
  const { scale_factor_spatial: factor, scale_factor_temporal: stride, z_dim: z } = config;
  const first = pictures.get(0);
  if (!first) throw new TypeError('a clip begins with a picture');
  const { width, height } = first;
  const { patch_size: patch } = config;
  const channels = pixelChannels(config);
  const pixels = (height * width) / patch ** 2;
  const folded = new Map<number, Float32Array>();
  for (const [frame, picture] of pictures) {
    if (picture.width !== width || picture.height !== height) {
      throw new TypeError('the pictures of a clip differ in size');
    }
    requireSteps(picture, factor);
    const own = foldPixels(picture.data, height, width, patch, 'column-row'); // [H·W/p², 3·p²]
    folded.set(frame, paddedChannels(own, pixels, 1, channels));
  }
  const grey = new Float32Array(channels * pixels);
  const [h, w] = [height / factor, width / factor];
  const graphs = clipEncoderGraphs(config, h, w);
  const padded = channels === config.in_channels ? checkpoint : paddedInput(checkpoint, channels);
  const images = await openImages(backend, graphs, padded, { ...options, storage: 'f32' });
  try {
    const levels = encoderParts(config, h, w).map((part) => new LevelRun(images, part));
    const latents = new Float32Array(z * latentFrames * h * w);
    for (let f = 0; f < latentFrames; f++) {
      const start = f === 0 ? 0 : 1 + (f - 1) * stride;
      const shown = Array.from({ length: f === 0 ? 1 : stride }, (_, i) => start + i);
      let frames = shown.map((frame) => folded.get(frame) ?? grey);
      for (const level of levels) frames = await level.next(frames);
      const latent = normalised(at(frames, 0), config);
      for (let c = 0; c < z; c++) {
        const plane = latent.subarray(c * h * w, (c + 1) * h * w);
        latents.set(plane, (c * latentFrames + f) * h * w);
      }
    }
    return latents;
  } finally {
    images.dispose();
  }
}

/** [h·w, z] in the VAE's space → [z, h·w] in the model's. */
function normalised(moments: Float32Array, config: VaeConfig): Float32Array<ArrayBuffer> {
  const { latents_mean: mean, latents_std: std, z_dim: z } = config;
  const pixels = moments.length / z;
  const latent = new Float32Array(moments.length);
  for (let c = 0; c < z; c++) {
    const [shift, scale] = [at(mean, c), at(std, c)];
    for (let i = 0; i < pixels; i++) {
      latent[c * pixels + i] = ((moments[i * z + c] as number) - shift) / scale;
    }
  }
  return latent;
}
