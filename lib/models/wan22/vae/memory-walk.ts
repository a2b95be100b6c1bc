import { elementCount } from '../../../gpu';
import { bandsOf } from './bands';
import { fewChannels, joinsTaps, type ResidualSpec } from './graphs';

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
  /** The largest single buffer among them. */
  readonly largest: number;
}

export type Dims = readonly [rows: number, width: number, channels: number];

export const bytesOf = (dims: readonly number[]) => 4 * elementCount(dims);

/** Buffers that are kept for reuse by kind: the highest number of each kind at a time counts. */
class Pool {
  readonly #kinds = new Map<string, { bytes: number; live: number; peak: number }>();

  take(kind: string, bytes: number, count = 1): void {
    const entry = this.#kinds.get(kind) ?? { bytes, live: 0, peak: 0 };
    entry.live += count;
    entry.peak = Math.max(entry.peak, entry.live);
    this.#kinds.set(kind, entry);
  }

  /** The largest buffer that there ever was. */
  get largest(): number {
    return Math.max(0, ...[...this.#kinds.values()].map(({ bytes }) => bytes));
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

/**
 * What the runtime takes for the parameters of its dispatches, whatever the size of the images:
 * 0.6 MB were counted.
 */
const runtimeOverhead = 2 ** 20;

/** Images that norm and SiLU make: one each, or each step of the norm where it is written out. */
const normImages = (channels: number) => (channels < fewChannels ? 5 : 2);

/** Walks through a network as `layers.ts` does and notes what it holds; keep the two in step. */
export class Walk {
  #caches = 0;
  #mostCaches = 0;
  readonly #images = new Pool();
  #spares = new Pool();
  readonly #runtime = new Pool();
  #staging = 0;

  constructor(readonly bandBytes: number) {}

  /** @param weights bytes of all that are held, and of the largest of them */
  result({ weights, largestWeight }: { weights: number; largestWeight: number }): VaeMemory {
    const images = this.#images.bytes;
    const runtime = this.#runtime.bytes + this.#staging + runtimeOverhead;
    this.forget();
    const caches = this.#mostCaches;
    const activations = images + runtime;
    // Partial sums are as large as the images that become of them.
    const largest = Math.max(
      largestWeight,
      this.#images.largest,
      this.#runtime.largest,
      this.#staging,
    );
    const total = weights + caches + activations;
    return { weights, caches, images, runtime, activations, total, largest };
  }

  /** Frees the partial sums. */
  forget(): void {
    this.#mostCaches = Math.max(this.#mostCaches, this.#caches + this.#spares.bytes);
    this.#caches = 0;
    this.#spares = new Pool();
  }

  take(...images: readonly (readonly number[])[]): void {
    for (const dims of images) this.#images.take(dims.join(), bytesOf(dims));
  }

  give(...images: readonly (readonly number[])[]): void {
    for (const dims of images) this.#images.give(dims.join());
  }

  /** Reads an image back: there is one buffer for it, as large as the largest. */
  read(image: Dims): void {
    this.#staging = Math.max(this.#staging, bytesOf(image));
  }

  /**
   * Buffers of one run of a graph. The runtime's pool goes by exact sizes, and what a run takes comes
   * back when it is over, from its last operators only with the run after it; see `CountingBackend`.
   */
  #inRun(...buffers: readonly number[]): void {
    for (const bytes of buffers) this.#runtime.take(String(bytes), bytes);
    for (const bytes of buffers) this.#runtime.give(String(bytes));
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
        this.#caches += 2 * bytesOf(result);
        this.#spares.use(result.join(), bytesOf(result), 2);
      }
      const joined = shape.causal && joinsTaps(filters);
      const added = { none: 0, identity: 1, linear: 3 }[residual.kind];
      // Each time tap but the oldest, what is added on the way, and one of the run before.
      const results = shape.causal ? 3 + added + (joined ? 2 : 0) : added > 0 ? added + 1 : 0;
      this.#inRun(
        ...Array.from({ length: shape.norm ? normImages(inputs) : 0 }, () => bytesOf(input)),
        ...Array.from({ length: results }, () => bytesOf(result)),
        ...(joined ? [3 * bytesOf(result)] : []),
      );
      // ONNX Runtime reorders the filters of a convolution in every run.
      this.#inRun(bytesOf([joined ? 3 * filters : filters, inputs, kernel, kernel]));
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
    const row = bytesOf([pixels, channels]);
    this.#inRun(row, row, row);
    const chunks = bandsOf(pixels, 4 * pixels, 2 * this.bandBytes);
    for (const chunk of chunks) {
      const part = [chunk.rows, channels];
      if (chunks.length > 1) {
        this.take(part, part);
        this.give(part, part);
      }
      // Scores and their softmax, of this run and of the one before.
      const scores = bytesOf([chunk.rows, pixels]);
      this.#inRun(scores, scores, scores, scores);
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
      // Per phase a convolution, a pick of the shortcut's channels and their sum; then all four side
      // by side, of this run and of the one before.
      const phase = bytesOf([rows, width, channels]);
      const perPhase = inputs === channels ? 2 : 3;
      this.#inRun(...Array.from({ length: 4 * perPhase }, () => phase), 4 * phase, 4 * phase);
      this.#inRun(bytesOf([channels, channels, 2, 2]));
    }
    if (bands.length > 1) this.#zeroRow(width * channels);
    return output;
  }

  downsample([height, width, channels]: Dims, inputs: number, space: boolean): Dims {
    const factor = space ? 2 : 1;
    const output: Dims = [height / factor, width / factor, channels];
    this.take(output);
    const sums = Array.from({ length: space ? 4 : 2 }, () => bytesOf(output));
    this.#inRun(...sums);
    this.#inRun(bytesOf([channels, inputs, factor, factor]));
    if (space) this.#inRun(bytesOf([channels, channels, 3, 3]));
    return output;
  }
}
