import { elementCount } from '../../gpu';
import { decoderBlocks, encoderBlocks, type VaeConfig } from '../config';
import { type TensorShapes, vaeTensors } from '../tensors';
import { bandsOf, defaultBandBytes } from './bands';
import { joinsTaps, type ResidualSpec } from './graphs';

/** Bytes on the device, computed without running anything. */
export interface VaeMemory {
  readonly weights: number;
  /** Partial sums that live from frame to frame, with their spares. */
  readonly caches: number;
  /** Images of ours between the runs. */
  readonly images: number;
  /** The runtime's own intermediates, which its pool keeps; an estimate from the graphs. */
  readonly runtime: number;
  /** `images` and `runtime` together. */
  readonly activations: number;
  readonly total: number;
}

type Dims = readonly [rows: number, width: number, channels: number];

const bytesOf = (dims: readonly number[]) => 4 * elementCount(dims);

/** Buffers that are kept for reuse by kind: the highest number of each kind at a time counts. */
class Pool {
  readonly #kinds = new Map<string, { bytes: number; live: number; peak: number }>();

  take(kind: string, bytes: number, count = 1): void {
    const entry = this.#kinds.get(kind) ?? { bytes, live: 0, peak: 0 };
    entry.live += count;
    entry.peak = Math.max(entry.peak, entry.live);
    this.#kinds.set(kind, entry);
  }

  give(kind: string, count = 1): void {
    const entry = this.#kinds.get(kind);
    if (entry) entry.live -= count;
  }

  /** `count` buffers at a time for a moment. */
  use(kind: string, bytes: number, count = 1): void {
    this.take(kind, bytes, count);
    this.give(kind, count);
  }

  get bytes(): number {
    let sum = 0;
    for (const { bytes, peak } of this.#kinds.values()) sum += bytes * peak;
    return sum;
  }
}

interface ConvolutionShape {
  readonly inputs: number;
  readonly filters: number;
  readonly kernel?: 1 | 3;
  readonly causal: boolean;
  readonly norm: boolean;
  readonly residual?: ResidualSpec;
  /** The result takes the place of what is added. */
  readonly inPlace?: boolean;
}

/** Walks through a network as `layers.ts` does and notes what it holds; keep the two in step. */
class Walk {
  caches = 0;
  readonly #images = new Pool();
  readonly #spares = new Pool();
  readonly #runtime = new Pool();

  constructor(readonly bandBytes: number) {}

  result(weights: number): VaeMemory {
    const [images, runtime] = [this.#images.bytes, this.#runtime.bytes];
    const caches = this.caches + this.#spares.bytes;
    const activations = images + runtime;
    return { weights, caches, images, runtime, activations, total: weights + caches + activations };
  }

  take(...images: readonly (readonly number[])[]): void {
    for (const dims of images) this.#images.take(dims.join(), bytesOf(dims));
  }

  give(...images: readonly (readonly number[])[]): void {
    for (const dims of images) this.#images.give(dims.join());
  }

  /** The runtime's pool goes by exact sizes. */
  #transient(bytes: number, count = 1): void {
    this.#runtime.use(String(bytes), bytes, count);
  }

  /** FrameConvolution.step: leaves its result taken. */
  convolution([height, width]: Dims, shape: ConvolutionShape): Dims {
    const { inputs, filters, kernel = 3, residual = { kind: 'none' } } = shape;
    const output: Dims = [height, width, filters];
    if (!shape.inPlace) this.take(output);
    const bands = bandsOf(height, 4 * width * Math.max(inputs, filters), this.bandBytes);
    const whole = bands.length === 1;
    const margin = !whole && kernel === 3 ? 2 : 0;
    for (const { rows } of bands) {
      const input: Dims = [rows + margin, width, inputs];
      const result: Dims = [rows, width, filters];
      const sideInputs = residual.kind === 'linear' ? residual.inputs : filters;
      const side: Dims = [rows, width, sideInputs];
      const held = whole ? [] : [input, ...(residual.kind === 'none' ? [] : [side]), result];
      this.take(...held);
      this.give(...held);
      if (shape.causal) {
        this.caches += 2 * bytesOf(result);
        this.#spares.use(result.join(), bytesOf(result), 2);
      }
      if (shape.norm) this.#transient(bytesOf(input), 2);
      const joined = shape.causal && joinsTaps(filters);
      const sums = { none: 1, identity: 2, linear: 3 }[residual.kind];
      this.#transient(bytesOf(result), shape.causal ? sums + (joined ? 1 : 0) : sums - 1);
      if (joined) this.#transient(3 * bytesOf(result));
      // ONNX Runtime reorders the filters of a convolution in every run.
      this.#transient(bytesOf([joined ? 3 * filters : filters, inputs, kernel, kernel]));
    }
    if (!whole && margin > 0) this.#zeroRow(width * inputs);
    return output;
  }

  #zeroCount = 0;
  #zeroRow(count: number): void {
    if (count <= this.#zeroCount) return;
    this.#zeroCount = count;
    this.take([count]);
  }

  /** ResidualBlock.step */
  residualBlock(x: Dims, filters: number, causal: boolean, keep: boolean): Dims {
    const [, , inputs] = x;
    const hidden = this.convolution(x, { inputs, filters, causal, norm: true });
    const residual: ResidualSpec =
      inputs === filters ? { kind: 'identity' } : { kind: 'linear', inputs };
    const shape = { inputs: filters, filters, causal, norm: true, residual };
    const bands = bandsOf(x[0], 4 * x[1] * filters, this.bandBytes);
    const inPlace = !keep && residual.kind === 'identity' && bands.length > 1;
    const y = this.convolution(hidden, { ...shape, inPlace });
    this.give(hidden);
    if (!keep && !inPlace) this.give(x);
    return y;
  }

  attention(x: Dims): Dims {
    const [height, width, channels] = x;
    const pixels = height * width;
    const rows = [0, 1, 2, 3].map(() => [pixels, channels]);
    this.take(...rows);
    this.#transient(bytesOf([pixels, channels]), 2);
    const chunks = bandsOf(pixels, 4 * pixels, 2 * this.bandBytes);
    for (const chunk of chunks) {
      const part = [chunk.rows, channels];
      if (chunks.length > 1) {
        this.take(part, part);
        this.give(part, part);
      }
      this.#transient(bytesOf([chunk.rows, pixels]), 2);
    }
    this.take(x);
    this.give(...rows);
    return x;
  }

  /** Residual block, attention, residual block; takes the input's place. */
  middle(input: Dims, causal: boolean): Dims {
    let x = input;
    for (const layer of [0, 1, 2]) {
      if (layer !== 1) x = this.residualBlock(x, x[2], causal, false);
      else {
        const y = this.attention(x);
        this.give(x);
        x = y;
      }
    }
    return x;
  }

  upsample([height, width, channels]: Dims, inputs: number): Dims {
    const output: Dims = [2 * height, 2 * width, channels];
    this.take(output);
    const rowBytes = 4 * width * Math.max(4 * channels, inputs);
    const bands = bandsOf(height, rowBytes, this.bandBytes);
    for (const { rows } of bands) {
      const source: Dims = [rows + 1, width, channels];
      const held: Dims[] = [source, source, [rows, width, inputs], [2 * rows, 2 * width, channels]];
      if (bands.length > 1) {
        this.take(...held);
        this.give(...held);
      }
      // Four phases, and of the last one the parts it is summed from; then all four side by side.
      this.#transient(bytesOf([rows, width, channels]), 6);
      this.#transient(bytesOf([rows, width, 4 * channels]));
      this.#transient(bytesOf([channels, channels, 2, 2]));
    }
    if (bands.length > 1) this.#zeroRow(width * channels);
    return output;
  }

  downsample([height, width, channels]: Dims, inputs: number, space: boolean): Dims {
    const factor = space ? 2 : 1;
    const output: Dims = [height / factor, width / factor, channels];
    this.take(output);
    this.#transient(bytesOf(output), space ? 2 : 1);
    this.#transient(bytesOf([channels, inputs, factor, factor]));
    if (space) this.#transient(bytesOf([channels, channels, 3, 3]));
    return output;
  }
}

/** Bytes of a decoder's or encoder's tensors as `weights.ts` holds them. */
function tensorBytes(shapes: TensorShapes, belongs: (name: string) => boolean): number {
  let sum = 0;
  for (const [name, shape] of shapes) {
    if (!belongs(name)) continue;
    // The 3×3 kernel behind a nearest ×2 is held as four of 2×2.
    const phases = name.endsWith('upsampler.resample.1.weight') ? 16 / 9 : 1;
    sum += bytesOf(shape) * phases;
    // Joined taps have a bias for each tap.
    const [filters = 0, , depth] = shape;
    const parts = name.includes('time_conv') ? 2 : 1;
    if (
      shape.length === 5 &&
      depth === 3 &&
      name.startsWith('decoder.') &&
      joinsTaps(filters / parts)
    ) {
      sum += 2 * 4 * filters;
    }
  }
  return sum;
}

/**
 * Device memory of the streaming decoder, all weights in f32. The runtime's part assumes its
 * exact-size pool, which keeps what it once took.
 */
export function vaeDecoderMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const { z_dim: z } = config;
  const blocks = decoderBlocks(config);
  const latent: Dims = [latentHeight, latentWidth, z];
  // The uploaded latent is no part of the pool, but there all the time.
  walk.take([...latent, 1]);
  const quantised = walk.convolution(latent, {
    inputs: z,
    filters: z,
    kernel: 1,
    causal: false,
    norm: false,
  });
  const top = blocks[0]?.in_dim ?? 0;
  let x = walk.convolution(quantised, { inputs: z, filters: top, causal: true, norm: false });
  walk.give(quantised);
  x = walk.middle(x, true);
  for (const block of blocks) {
    const input = x;
    for (let i = 0; i < block.resnets; i++) {
      x = walk.residualBlock(x, block.out_dim, true, i === 0 && block.space);
    }
    if (!block.space) continue;
    // While a frame passes the later levels, these two wait for the block's second frame.
    let frame = x;
    if (block.time) {
      const shape = { inputs: block.out_dim, filters: block.out_dim, causal: true, norm: false };
      frame = walk.convolution(x, { ...shape, kernel: 1 });
      walk.give(frame);
      frame = walk.convolution(x, { ...shape, kernel: 1 });
    }
    const y = walk.upsample(frame, block.in_dim);
    if (block.time) walk.give(frame);
    else walk.give(x, input);
    x = y;
  }
  const filters = config.out_channels;
  walk.convolution(x, { inputs: x[2], filters, causal: true, norm: true });
  const decoding = (name: string) =>
    name.startsWith('decoder.') || name.startsWith('post_quant_conv.');
  return walk.result(tensorBytes(vaeTensors(config), decoding));
}

/** Device memory of the first-frame encoder, which holds the weights of one part at a time. */
export function vaeEncoderMemory(
  config: VaeConfig,
  latentHeight: number,
  latentWidth: number,
  bandBytes: number = defaultBandBytes,
): VaeMemory {
  const walk = new Walk(bandBytes);
  const { z_dim: z, in_channels: inputs, base_dim: base } = config;
  const scale = config.scale_factor_spatial / config.patch_size;
  const image: Dims = [latentHeight * scale, latentWidth * scale, inputs];
  const once = { causal: false, norm: false };
  walk.take(image);
  let x = walk.convolution(image, { ...once, inputs, filters: base });
  walk.give(image);
  const blocks = encoderBlocks(config);
  for (const block of blocks) {
    const input = x;
    for (let i = 0; i < block.resnets; i++) {
      x = walk.residualBlock(x, block.out_dim, false, i === 0);
    }
    const y = walk.downsample(x, block.in_dim, block.space);
    walk.give(x, input);
    x = y;
  }
  x = walk.middle(x, false);
  const top = x[2];
  const moments = walk.convolution(x, { inputs: top, filters: 2 * z, causal: false, norm: true });
  walk.give(x);
  walk.convolution(moments, { ...once, inputs: 2 * z, filters: z, kernel: 1 });
  // The middle is the part with the most weights; of a 3×3×3 kernel one time tap is held.
  const middle = tensorBytes(vaeTensors(config), (name) => name.startsWith('encoder.mid_block.'));
  const deadTaps = 4 * bytesOf([top, top, 2, 3, 3]);
  return walk.result(middle - deadTaps);
}
