import { at } from '../../contract';
import {
  type AttentionMatch,
  type ConvolutionMatch,
  filterDims,
  type Graph,
  type ImageMatch,
  imageSize,
  imagesOf,
  matchImages,
  repeatPicks,
  type Value,
  weightsKey,
} from '../../graph';
import { type ImageExecutor, scheduleOf } from '../image-executor';
import { handleMessages } from '../messages';
import type { Category } from '../tensor';
import { attend } from './attention';
import { type Block, SimdHeap } from './heap';
import { channelFilter, fill, groupSize, type ProductName, product } from './kernels';
import { norm } from './row-kernels';
import { type Job, SimdThreads } from './threads';

/** Images have a border of so many pixels of zeros. */
const border = 1;
/** Between two turns of the event loop, in milliseconds: a cancellation may come in. */
const turnMs = 50;

/** An image [H, W, C] with a border, its channels filled up with zeros to whole groups. */
interface Image extends Block {
  readonly height: number;
  readonly width: number;
  /** Bytes from a pixel to the next, and to the one below. */
  readonly step: number;
  readonly row: number;
  /** Address of the first pixel. */
  readonly first: number;
}

/** Filters of groups of 8, one group after the other: [values, 8] each, and what is added to each filter. */
interface Filters {
  readonly weights: Block;
  readonly bias: Block;
  readonly groups: number;
  /** Bytes of a group's weights. */
  readonly group: number;
}

interface MatchWeights {
  /** Filters; of ×2 those of each phase, of an attention of each of its layers. */
  readonly filters: readonly Filters[];
  readonly shortcut: Filters | null;
  readonly gamma: Block | null;
}

/** What is convolved: runs of values from the first pixel on, and how far the pixels of a row and the rows lie apart. */
interface Source {
  readonly starts: readonly number[];
  /** Values of a run. */
  readonly length: number;
  readonly step: number;
  readonly row: number;
}

/** Accounts for bytes; see {@link SimdImages.open}. */
type Take = (category: Category, bytes: number) => () => void;
/** Weights of layers, by `weightsKey` and name. */
type PlainWeights = ReadonlyMap<string, Readonly<Record<string, Float32Array>>>;

/** Whether kernels for the CPU compute a match; what they do not, the runtime computes. */
function isComputed(match: ImageMatch): boolean {
  if (match.kind === 'attention') return true;
  const { layer, activation, shuffle, residual } = match;
  // A filter for each channel adds nothing else.
  const isSimple = !layer.depthwise || (layer.taps === 1 && !residual);
  return (
    isSimple &&
    layer.kernel <= 3 &&
    !shuffle &&
    activation?.op !== 'prelu' &&
    !(residual?.kind === 'linear' && layer.stride > 1)
  );
}

/**
 * Computes graphs of images on the CPU by vectors of WebAssembly. A causal layer keeps the newest images that it read,
 * and sums over all of them at once.
 */
export class SimdImages implements ImageExecutor {
  readonly #heap: SimdHeap;
  readonly #threads: SimdThreads;
  readonly #weights = new Map<string, MatchWeights>();
  /** What causal layers read last, by name, the newest first. */
  readonly #past = new Map<string, readonly Image[]>();
  /** Images of a graph that is being computed. */
  readonly #images = new Map<Value, Image>();
  readonly #releases: (() => void)[] = [];
  /** Addresses of runs. */
  readonly #segments: Block;

  private constructor(
    take: Take,
    readonly signal: AbortSignal | undefined,
  ) {
    this.#heap = new SimdHeap((category, bytes) => this.#releases.push(take(category, bytes)));
    this.#threads = new SimdThreads(this.#heap);
    this.#segments = this.#heap.allocate(4 * 27);
  }

  /**
   * Takes the weights of graphs.
   *
   * @param take accounts for bytes, and throws where there is no room; it returns what gives them back
   * @param weights as the runtime has them; they are not needed any more afterwards
   * @returns null where a graph has what these kernels do not compute
   * @throws KinoraError `OUT_OF_MEMORY`; nothing stays allocated then
   */
  static open(
    take: Take,
    graphs: readonly Graph[],
    weights: PlainWeights,
    signal?: AbortSignal,
  ): SimdImages | null {
    const matches = graphs.flatMap(matchImages);
    if (!matches.every(isComputed)) return null;
    const images = new SimdImages(take, signal);
    try {
      for (const match of matches) images.#load(match, weights);
      return images;
    } catch (error) {
      images.dispose();
      throw error;
    }
  }

  async *frames(
    graph: Graph,
    inputs: Readonly<Record<string, Float32Array>>,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const images = this.#images;
    const { matches, results, lastReads } = scheduleOf(graph);
    for (const value of graph.values) {
      if (value.call.op !== 'input') continue;
      const { name } = value.call;
      const image = this.#take(value);
      images.set(value, image);
      this.#write(image, imageSize(value).channels, inputs[name] ?? missing(name));
    }
    let turn = performance.now();
    for (const match of matches) {
      const { value } = match;
      images.set(value, this.#take(value));
      if (match.kind === 'attention') this.#attend(match);
      else this.#convolve(match);
      for (const image of new Set(imagesOf(match))) {
        if (lastReads.get(image) === match) this.#give(image);
      }
      if (results.has(value)) yield this.#read(this.#of(value), imageSize(value).channels);
      if (!lastReads.has(value)) this.#give(value);
      if (performance.now() - turn > turnMs) {
        await handleMessages();
        turn = performance.now();
      }
      this.signal?.throwIfAborted();
    }
  }

  #convolve(match: ConvolutionMatch): void {
    const { layer, residual } = match;
    const { filters, shortcut, gamma } = this.#weights.get(weightsKey(match)) ?? missing('weights');
    const y = this.#of(match.value);
    const x = this.#of(match.x);
    const normed = gamma && this.#normed('rmsNormSilu', x, gamma, layer.inputs);
    const frames = layer.taps > 1 ? this.#remember(match, normed ?? x) : [normed ?? x];
    const side = residual && this.#of(residual.side);
    const limits = limitsOf(match);
    if (layer.depthwise) {
      this.#filterChannels(match, at(filters, 0), normed ?? x, y);
    } else if (match.upsample) {
      const picked = side && this.#picked(match, side);
      const output = { step: 2 * y.step, row: 2 * y.row };
      for (const [phase, of] of filters.entries()) {
        const [row, column] = [phase >> 1, phase & 1];
        const first = y.first + row * y.row + column * y.step;
        const source = sourceOf(frames, 2, row - 1, column - 1, 1);
        const added = picked && at(picked, phase);
        this.#rows(source, of, { ...x, ...output, first }, added, limits);
      }
      for (const image of new Set(picked ?? [])) if (image !== side) this.#heap.release(image);
    } else {
      // A shortcut is computed into the place of the result, and added from there.
      if (shortcut && side) this.#rows(sourceOf([side], 1, 0, 0, 1), shortcut, y, null);
      const edge = layer.kernel === 3 && layer.stride === 1 ? -1 : 0;
      const source = sourceOf(frames, layer.kernel, edge, edge, layer.stride);
      this.#rows(source, at(filters, 0), y, shortcut ? y : side, limits);
    }
    if (normed && layer.taps === 1) this.#heap.release(normed);
    if (layer.part.index === layer.part.of - 1) this.#forget(layer.name, layer.taps - 1);
  }

  /** Convolves all pixels of an image by all filters. */
  #rows(
    { starts, length, step, row }: Source,
    { weights, bias, groups, group }: Filters,
    y: Pick<Image, 'height' | 'width' | 'step' | 'row' | 'first'>,
    side: Pick<Image, 'step' | 'row' | 'first'> | null,
    limits = limitsOf(null),
  ): void {
    new Int32Array(this.#heap.memory.buffer).set(starts, this.#segments.at / 4);
    const job: Job<ProductName> = {
      segments: this.#segments.at,
      count: starts.length,
      length: length / 4,
      offset: [0, row],
      weights: weights.at,
      weightStep: group,
      groups,
      bias: bias.at,
      output: [y.first, y.row],
      outputStep: y.step,
      side: side ? [side.first, side.row] : this.#heap.zeros.at,
      sideStep: side?.step ?? 0,
      sideGroup: side ? 4 * groupSize : 0,
      rows: y.width,
      ...limits,
      factors: this.#heap.ones.at,
      factorStep: 0,
    };
    this.#threads.run(`product ${step}`, () => product(step), job, y.height);
  }

  /** Filters each channel of an image by 3×3. */
  #filterChannels(match: ConvolutionMatch, filters: Filters, x: Image, y: Image): void {
    const { stride } = match.layer;
    const first = stride === 1 ? x.first - x.row - x.step : x.first;
    const job = {
      x: [first, stride * x.row],
      line: x.row,
      step: stride * x.step,
      weights: filters.weights.at,
      bias: filters.bias.at,
      output: [y.first, y.row],
      rows: y.width,
      ...limitsOf(match),
    } as const;
    this.#threads.run(`filter ${x.step}`, () => channelFilter(x.step), job, y.height);
  }

  /** An image behind an RMS norm, and SiLU. */
  #normed(kind: 'rmsNorm' | 'rmsNormSilu', x: Image, gamma: Block, channels: number): Image {
    const y = this.#image(x.height, x.width, x.step / 4);
    const job = {
      x: [x.first, x.row],
      y: [y.first, x.row],
      rows: x.width,
      fours: x.step / 16,
      factors: gamma.at,
      added: 0,
      share: 1 / channels,
      epsilon: 1e-24,
    } as const;
    this.#threads.run(kind, () => norm(kind), job, x.height);
    return y;
  }

  /** The frames that a causal layer sees, the newest first. Parts of a layer share them. */
  #remember({ layer, norm }: ConvolutionMatch, newest: Image): readonly Image[] {
    const past = this.#past.get(layer.name) ?? [];
    if (layer.part.index > 0) {
      if (norm !== null) this.#heap.release(newest);
      return past;
    }
    let kept = newest;
    if (norm === null) {
      kept = this.#image(newest.height, newest.width, newest.step / 4);
      this.#heap.floats.copyWithin(kept.at / 4, newest.at / 4, (newest.at + newest.bytes) / 4);
    }
    const frames = [kept, ...past];
    this.#past.set(layer.name, frames);
    return frames;
  }

  #forget(layer: string, count: number): void {
    const frames = this.#past.get(layer);
    for (const image of frames?.slice(count) ?? []) this.#heap.release(image);
    if (frames) this.#past.set(layer, frames.slice(0, count));
  }

  /** What is added to each of the four pixels that a pixel becomes. */
  #picked(match: ConvolutionMatch, side: Image): readonly Image[] {
    const { filters } = match.layer;
    const group = imageSize(match.residual?.side ?? missing('side')).channels / filters;
    const picks = repeatPicks(match);
    if (group <= 1) return picks.map(() => side);
    const made = new Map<number, Image>();
    for (const pick of new Set(picks)) {
      const image = this.#image(side.height, side.width, fill(filters));
      made.set(pick, image);
      const { floats } = this.#heap;
      for (let pixel = 0; pixel < side.height * side.width; pixel++) {
        const [from, to] = [placeOf(side, pixel) + pick, placeOf(image, pixel)];
        for (let c = 0; c < filters; c++) floats[to + c] = floats[from + c * group] as number;
      }
    }
    return picks.map((pick) => made.get(pick) ?? side);
  }

  /** `x + W·softmax(q·kᵀ/√C)·v`: products of matrices are convolutions of single pixels. */
  #attend(match: AttentionMatch): void {
    const { filters, gamma } = this.#weights.get(weightsKey(match)) ?? missing('weights');
    const [x, y] = [this.#of(match.x), this.#of(match.value)];
    const { height, width, channels } = imageSize(match.x);
    const count = height * width;
    const normed = this.#normed('rmsNorm', x, gamma ?? missing('gamma'), channels);
    /** Pixels without a border between rows. */
    const flat = () => {
      const image = this.#image(1, count, fill(channels));
      return { ...image, height, width, row: width * image.step, count };
    };
    const [queries, keys, values, attended] = [flat(), flat(), flat(), flat()];
    for (const [index, image] of [queries, keys, values].entries()) {
      this.#rows(sourceOf([normed], 1, 0, 0, 1), at(filters, index), image, null);
    }
    const [headSize, scale] = [fill(channels), 1 / Math.sqrt(channels)];
    const of = { queries, keys, values, output: attended.first, heads: 1, headSize, scale };
    attend(this.#heap, this.#threads, of);
    this.#rows(sourceOf([attended], 1, 0, 0, 1), at(filters, 3), y, x);
    for (const block of [normed, queries, keys, values, attended]) this.#heap.release(block);
  }

  /**
   * Filters of groups of 8.
   *
   * @param ages weights of the newest frame first, [filters, inputs, pixels] each
   * @param strides to the weights of the next filter and of the next input
   */
  #pack(
    { filters, inputs, pixels = 1 }: { filters: number; inputs: number; pixels?: number },
    ages: readonly Float32Array[],
    bias?: Float32Array,
    strides: readonly [filter: number, input: number] = [inputs * pixels, pixels],
  ): Filters {
    const groups = Math.ceil(filters / groupSize);
    const values = ages.length * pixels * fill(inputs);
    const [nextFilter, nextInput] = strides;
    const packed = new Float32Array(groups * values * groupSize);
    for (const [age, data] of ages.entries()) {
      for (let filter = 0; filter < filters; filter++) {
        const start = (filter - (filter % groupSize)) * values + (filter % groupSize);
        for (let pixel = 0; pixel < pixels; pixel++) {
          let to = start + (age * pixels + pixel) * fill(inputs) * groupSize;
          let from = filter * nextFilter + pixel;
          for (let c = 0; c < inputs; c++, from += nextInput, to += groupSize) {
            packed[to] = data[from] as number;
          }
        }
      }
    }
    const added = new Float32Array(groups * groupSize);
    if (bias) added.set(bias.subarray(0, filters));
    const group = 4 * values * groupSize;
    return { weights: this.#heap.put(packed), bias: this.#heap.put(added), groups, group };
  }

  #load(match: ImageMatch, weights: PlainWeights): void {
    const key = weightsKey(match);
    if (this.#weights.has(key)) return;
    const bound = weights.get(key) ?? missing(key);
    const find = (name: string) => bound[name];
    const named = (name: string) => find(name) ?? missing(name);
    const gamma = find('gamma') ? this.#filled(named('gamma')) : null;
    if (match.kind === 'attention') {
      const filters = match.layers.map((layer, index) =>
        this.#pack(layer, [named(`weight${index}`)], named(`bias${index}`)),
      );
      this.#weights.set(key, { filters, shortcut: null, gamma });
      return;
    }
    const { layer, residual, upsample } = match;
    const { inputs, filters, kernel, taps } = layer;
    const pixels = (upsample ? 2 : kernel) ** 2;
    const convolution = (ages: readonly Float32Array[]) =>
      this.#pack({ filters, inputs, pixels }, ages, find('bias'));
    const size = filterDims(layer).reduce((product, count) => product * count, 1);
    const joined = find('taps');
    const tapOf = (age: number) =>
      joined ? joined.subarray(age * size, (age + 1) * size) : named(`tap${2 - age}`);
    if (layer.depthwise) {
      const channels = fill(inputs);
      const taps = Float32Array.from({ length: 9 * channels }, (_, i) =>
        i % channels < inputs
          ? at(named('tap2'), 9 * (i % channels) + Math.floor(i / channels))
          : 0,
      );
      const weights = this.#heap.put(taps);
      const bias = this.#filled(named('bias'));
      const packed = { weights, bias, groups: 1, group: weights.bytes };
      this.#weights.set(key, { filters: [packed], shortcut: null, gamma });
      return;
    }
    const packed = upsample
      ? ['00', '01', '10', '11'].map((phase) => convolution([named(`phase${phase}`)]))
      : [convolution(Array.from({ length: taps }, (_, age) => tapOf(age)))];
    const shortcut =
      residual?.kind === 'linear'
        ? this.#pack(
            { filters, inputs: residual.layer.inputs },
            [named('residualWeight')],
            named('residualBias'),
            [1, filters],
          )
        : null;
    this.#weights.set(key, { filters: packed, shortcut, gamma });
  }

  /** A vector for each channel of an image. */
  #filled(data: Float32Array): Block {
    const filled = new Float32Array(fill(data.length));
    filled.set(data);
    return this.#heap.put(filled);
  }

  #image(height: number, width: number, channels: number): Image {
    const step = 4 * channels;
    const row = (width + 2 * border) * step;
    const bytes = (height + 2 * border) * row;
    const block = this.#heap.allocate(bytes, `${height}×${width}×${channels}`);
    const first = block.at + border * (row + step);
    return { ...block, height, width, step, row, first };
  }

  #take(value: Value): Image {
    const { height, width, channels } = imageSize(value);
    return this.#image(height, width, fill(channels));
  }

  #of(value: Value): Image {
    return this.#images.get(value) ?? missing(value.call.op);
  }

  #give(value: Value): void {
    this.#heap.release(this.#of(value));
    this.#images.delete(value);
  }

  #write(image: Image, channels: number, data: Float32Array): void {
    const { floats } = this.#heap;
    for (let pixel = 0; pixel < image.height * image.width; pixel++) {
      const to = placeOf(image, pixel);
      for (let c = 0; c < channels; c++) floats[to + c] = data[pixel * channels + c] as number;
    }
  }

  #read(image: Image, channels: number): Float32Array<ArrayBuffer> {
    const { floats } = this.#heap;
    const data = new Float32Array(image.height * image.width * channels);
    for (let pixel = 0; pixel < image.height * image.width; pixel++) {
      const from = placeOf(image, pixel);
      for (let c = 0; c < channels; c++) data[pixel * channels + c] = floats[from + c] as number;
    }
    return data;
  }

  reset(): void {
    for (const name of this.#past.keys()) this.#forget(name, 0);
    // Of a graph that was left half computed.
    for (const value of [...this.#images.keys()]) this.#give(value);
  }

  dispose(): void {
    this.#threads.dispose();
    for (const release of this.#releases.splice(0)) release();
  }
}

/** The least and the largest result of a match. */
function limitsOf(match: ConvolutionMatch | null) {
  const op = match?.activation?.op;
  return {
    floor: op ? 0 : Number.NEGATIVE_INFINITY,
    ceiling: op === 'relu6' ? 6 : Number.POSITIVE_INFINITY,
  };
}

/** Where a pixel begins, in numbers; pixels count row by row. */
function placeOf({ first, row, step, width }: Image, pixel: number): number {
  return (first + Math.floor(pixel / width) * row + (pixel % width) * step) / 4;
}

/** Runs of `width` pixels of the newest frame first, its rows from the top, for the first pixel of the result. */
function sourceOf(
  frames: readonly Image[],
  width: number,
  top: number,
  left: number,
  stride: number,
): Source {
  const { step, row } = at(frames, 0);
  const starts = frames.flatMap(({ first }) =>
    Array.from({ length: width }, (_, y) => first + (top + y) * row + left * step),
  );
  return { starts, length: (width * step) / 4, step: stride * step, row: stride * row };
}

function missing(name: string): never {
  throw new TypeError(`${name} is not bound`);
}
