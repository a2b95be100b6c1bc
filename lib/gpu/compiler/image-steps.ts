import {
  type AttentionMatch,
  type ConvolutionMatch,
  type Graph,
  type ImageMatch,
  imageSize,
  imagesOf,
  matchImages,
  repeatPicks,
  type Value,
  weightsKey,
} from '../../graph';
import type { Bindings } from '../backend';
import { requireBound } from '../executor';
import {
  type Compute,
  type ConvolutionShape,
  type ConvolutionVariant,
  channelNormDispatches,
  convolutionDispatches,
  type Dispatch,
  depthwiseDispatch,
  plainConvolution,
  type Span,
  type Storage,
  softmaxDispatch,
  storageBytes,
} from '../kernels';
import type { DeviceTensor } from '../tensor';
import type { Bin, Lifetimes, Slot } from './arena';
import { type SlotOperand, slotOperand } from './places';
import { Refusal, refusing } from './refusal';

/** What graphs of images are compiled for. */
export interface ImageOptions {
  readonly variant: ConvolutionVariant;
  /** Of images behind a norm and of weights. Inputs, results, and what is added to them are f32. */
  readonly storage: Storage;
  readonly limits: Compute['limits'];
}

/** What the dispatches of a step are listed for. */
export interface ImageListing {
  readonly bins: ReadonlyMap<Bin, DeviceTensor>;
  /** Inputs and results of graphs, by `tensorKey`. */
  readonly tensors: ReadonlyMap<string, DeviceTensor>;
  readonly weights: (key: string) => Bindings;
  readonly history: FrameHistory;
  /** Copies the bytes of an operand; it happens after all that was dispatched before. */
  readonly copy: (from: Span, to: DeviceTensor, bytes: number) => void;
}

/** Lists the dispatches of a match, and the result of the graph that they compute. */
export interface ImageStep {
  readonly list: (listing: ImageListing) => readonly Dispatch[];
  readonly result: string | null;
}

/**
 * The newest inputs of causal layers, each in a tensor of its own: none is copied, and the memory of the oldest is
 * that of the next one of its size.
 */
export class FrameHistory {
  readonly #frames = new Map<string, readonly DeviceTensor[]>();
  readonly #free = new Map<number, DeviceTensor[]>();

  constructor(readonly make: (bytes: number) => DeviceTensor) {}

  /** A place for the newest frame of a layer. */
  push(layer: string, bytes: number): DeviceTensor {
    const frame = this.#free.get(bytes)?.pop() ?? this.make(bytes);
    this.#frames.set(layer, [frame, ...this.frames(layer)]);
    return frame;
  }

  /** The newest first. */
  frames(layer: string): readonly DeviceTensor[] {
    return this.#frames.get(layer) ?? [];
  }

  /** Gives the frame back that the next step does not need. @param taps frames that it sees, its own among them */
  trim(layer: string, taps: number): void {
    const frames = this.frames(layer);
    for (const frame of frames.slice(taps - 1)) this.#give(frame);
    this.#frames.set(layer, frames.slice(0, taps - 1));
  }

  /** Forgets all frames; their memory stays. */
  reset(): void {
    for (const frames of this.#frames.values()) for (const frame of frames) this.#give(frame);
    this.#frames.clear();
  }

  #give(frame: DeviceTensor): void {
    const free = this.#free.get(frame.bytes) ?? [];
    free.push(frame);
    this.#free.set(frame.bytes, free);
  }
}

/** Where a value lies: in a slot, or in a tensor of the graph's inputs and results. */
type ImagePlace =
  | { readonly slot: Slot; readonly storage: Storage }
  | { readonly tensor: string; readonly storage: 'f32' };

/** Images in f32 with as many elements and the same name share a tensor. */
export function tensorKey(name: string, value: Value): string {
  return `${name} ${value.dims.join()}`;
}

/** The tensor of a graph's result: it is read before the next one is computed, so that all of a size share one. */
export const resultName = 'result';

/**
 * Compiles a graph of images to steps. No device is needed for it.
 *
 * @param lifetimes takes the memory of its images; graphs of one program follow each other in it
 * @throws Refusal for what no kernel computes
 */
export function compileImages(
  graph: Graph,
  options: ImageOptions,
  lifetimes: Lifetimes,
): readonly ImageStep[] {
  return new ImageCompiler(graph, options, lifetimes).compile();
}

class ImageCompiler {
  readonly #places = new Map<Value, ImagePlace>();
  readonly #matches: readonly ImageMatch[];
  readonly #results = new Map<Value, string>();

  constructor(
    readonly graph: Graph,
    readonly options: ImageOptions,
    readonly lifetimes: Lifetimes,
  ) {
    this.#matches = matchImages(graph);
    for (const [name, { value }] of graph.outputs) this.#results.set(value, name);
    for (const value of graph.values) {
      if (value.call.op !== 'input') continue;
      const tensor = tensorKey(value.call.name, value);
      this.#places.set(value, { tensor, storage: 'f32' });
    }
  }

  compile(): readonly ImageStep[] {
    return this.#matches.map((match, index) => {
      const list =
        match.kind === 'attention'
          ? this.#attention(match, index)
          : this.#convolution(match, index);
      const result = this.#results.get(match.value) ?? null;
      return { list: refusing(this.graph, weightsKey(match), list), result };
    });
  }

  #at(value: Value): ImagePlace {
    const place = this.#places.get(value);
    if (!place) throw new TypeError(`${value.call.op} is read before it is computed`);
    return place;
  }

  /** The place of a result: that of the image that is added, where nothing reads it any more. */
  #make(value: Value, storage: Storage, added: Value | null, index: number): ImagePlace {
    const place = this.#placeOf(value, storage, added, index);
    this.#places.set(value, place);
    return place;
  }

  #placeOf(value: Value, storage: Storage, added: Value | null, index: number): ImagePlace {
    if (this.#results.has(value)) return { tensor: tensorKey(resultName, value), storage: 'f32' };
    const later = this.#matches.slice(index + 1);
    if (added && !later.some((match) => imagesOf(match).includes(added))) {
      const place = this.#at(added);
      if ('slot' in place) return place;
    }
    const { height, width, channels } = imageSize(value);
    const bytes = height * width * channels * storageBytes(storage);
    return { slot: this.lifetimes.take(bytes), storage };
  }

  #step(reads: readonly ImagePlace[], writes: readonly ImagePlace[]): void {
    const slots = (places: readonly ImagePlace[]) =>
      places.flatMap((place) => ('slot' in place ? [place.slot] : []));
    const written = slots(writes);
    this.lifetimes.step(
      slots(reads).filter((slot) => !written.includes(slot)),
      written,
    );
  }

  #convolution(match: ConvolutionMatch, index: number): ImageStep['list'] {
    const { value, layer, norm, residual } = match;
    const { limits, variant, storage } = this.options;
    const x = this.#at(match.x);
    const side = residual && this.#at(residual.side);
    // A shortcut through the same kernel has the storage of its image.
    const normed = residual?.kind === 'linear' && side ? side.storage : storage;
    const input = norm === null ? x.storage : normed;
    const { part } = layer;
    const activation = match.activation?.op ?? null;
    if (activation === 'relu6' || (layer.depthwise && layer.taps === 1)) {
      throw new Refusal(layer.name, 'convolution', 'has no kernel on a GPU');
    }
    const weight = layer.precise ? 'f32' : storage;
    const output = this.#outputOf(match, side, input);
    const size = imageSize(match.x);
    const bytes =
      Math.ceil((size.height * size.width * size.channels * storageBytes(input)) / 16) * 16;
    const isCausal = layer.taps > 1;
    // The frame that is convolved is in the history, in a slot of its own, or where it was.
    const frame: ImagePlace | null = isCausal
      ? null
      : norm === null
        ? x
        : { slot: this.lifetimes.take(bytes), storage: input };
    const isPushed = isCausal && norm === null && part.index === 0;
    if (norm !== null || isPushed) this.#step([x], frame && frame !== x ? [frame] : []);
    const added = residual?.kind === 'same' ? residual.side : null;
    const y = this.#make(value, output, added, index);
    const stored = added !== null && y === side;
    this.#step([...(frame ? [frame] : []), ...(side && !stored ? [side] : [])], [y]);

    const { name, kernel: width, stride, depthwise } = layer;
    const scale = match.upsample || match.shuffle ? 2 : 1;
    const filters = match.shuffle ? layer.filters / 4 : layer.filters;
    const kernel = match.upsample ? 2 : width;
    const edge = stride > 1 ? 0 : Math.floor(kernel / 2);
    const shape: ConvolutionShape = {
      frames: layer.taps,
      input,
      weight,
      output,
      residual: stored ? 'stored' : (residual?.kind ?? 'none'),
      side: side?.storage ?? input,
      bias: layer.bias,
      activation,
      shuffled: match.shuffle,
      wholeVectors: filters % 4 === 0,
    };
    return (listing) => {
      const weights = listing.weights(weightsKey(match));
      const source = operandOf(x, listing);
      const jobs: Dispatch[] = [];
      if (norm !== null) {
        const pixels = size.height * size.width;
        const run = { input: x.storage, output: input, pixels, channels: size.channels };
        const y = frame ? operandOf(frame, listing) : listing.history.push(name, bytes);
        const gamma = bound(weights, 'gamma');
        jobs.push(...channelNormDispatches({ limits }, { ...run, x: source, gamma, y }));
      }
      if (isPushed) listing.copy(source, listing.history.push(name, bytes), bytes);
      const frames = isCausal
        ? listing.history.frames(name)
        : [frame && frame !== x ? operandOf(frame, listing) : source];
      if (depthwise) {
        const sizes = { ...size, kernel, input, output };
        const weight = bound(weights, 'weights');
        jobs.push(
          depthwiseDispatch({ ...sizes, x: frames, weights: weight, y: operandOf(y, listing) }),
        );
      } else {
        jobs.push(
          ...convolutionDispatches({ limits }, variant, shape, {
            weights: bound(weights, 'weights'),
            ...(shape.bias && { bias: bound(weights, 'bias') }),
            ...(shape.activation === 'prelu' && { slope: bound(weights, 'slope') }),
            x: frames,
            side: side && !stored ? operandOf(side, listing) : undefined,
            y: operandOf(y, listing),
            height: size.height,
            width: size.width,
            inputs: size.channels,
            filters,
            kernel: [kernel, kernel],
            pads: [edge, edge],
            ...(stride > 1 && { stride }),
            outputHeight: size.height / stride,
            outputWidth: size.width / stride,
            scale,
            picks: repeatPicks(match),
            sideInputs: residual ? imageSize(residual.side).channels : filters,
          }),
        );
      }
      if (isCausal && part.index === part.of - 1) listing.history.trim(name, layer.taps);
      return jobs;
    };
  }

  #outputOf(
    { value, layer, norm, upsample, shuffle }: ConvolutionMatch,
    side: ImagePlace | null,
    input: Storage,
  ): Storage {
    const { storage } = this.options;
    if (this.#results.has(value)) return 'f32';
    if (upsample || shuffle) return storage;
    if (side) return side.storage;
    if (layer.precise) return 'f32';
    return norm === null ? input : storage;
  }

  /**
   * `x + W·softmax(q·kᵀ/√C)·v`, as products of matrices: each is a convolution of single pixels. Rows of pixels are
   * filled up to a multiple of 4 with copies of the first ones, to which no attention is paid.
   */
  #attention(match: AttentionMatch, index: number): ImageStep['list'] {
    const { limits } = this.options;
    const { height, width, channels } = imageSize(match.x);
    const pixels = height * width;
    const rows = Math.ceil(pixels / 4) * 4;
    const take = (...dims: readonly [number, number]): ImagePlace => ({
      slot: this.lifetimes.take(4 * dims[0] * dims[1]),
      storage: 'f32',
    });
    const x = this.#at(match.x);
    const [normed, q, k] = [take(rows, channels), take(rows, channels), take(rows, channels)];
    const [v, scores, attended] = [take(channels, rows), take(rows, rows), take(rows, channels)];
    this.#step([x], [normed]);
    this.#step([normed], [q]);
    this.#step([normed], [k]);
    this.#step([normed], [v]);
    this.#step([q, k], [scores]);
    this.#step([], [scores]);
    this.#step([scores, v], [attended]);
    const y = this.#make(match.value, x.storage, match.x, index);
    const stored = y === x;
    this.#step([attended, ...(stored ? [] : [x])], [y]);

    const product = (of: MatrixProduct) => matrixProduct(this.options, of);
    return (listing) => {
      const at = (place: ImagePlace) => operandOf(place, listing);
      const weights = listing.weights(weightsKey(match));
      const matrix = (i: number) => bound(weights, `weight${i}`);
      const bias = (i: number) => bound(weights, `bias${i}`);
      const [m, c] = [rows, channels];
      const norm = {
        input: x.storage,
        output: 'f32',
        plain: pixels,
        pixels: rows,
        channels,
      } as const;
      const gamma = bound(weights, 'gamma');
      return [
        ...channelNormDispatches({ limits }, { ...norm, x: at(x), gamma, y: at(normed) }),
        ...product({ a: at(normed), b: matrix(0), y: at(q), sizes: [m, c, c], bias: bias(0) }),
        ...product({ a: at(normed), b: matrix(1), y: at(k), sizes: [m, c, c], bias: bias(1) }),
        // As rows of the softmax sum to 1, the bias of v is added behind it.
        ...product({ a: matrix(2), b: at(normed), y: at(v), sizes: [c, c, m] }),
        ...product({ a: at(q), b: at(k), y: at(scores), sizes: [m, c, m] }),
        softmaxDispatch(at(scores), m, {
          columns: pixels,
          stride: m,
          scale: 1 / Math.sqrt(channels),
        }),
        ...product({ a: at(scores), b: at(v), y: at(attended), sizes: [m, m, c], bias: bias(2) }),
        ...product({
          a: at(attended),
          b: matrix(3),
          y: at(y),
          sizes: [pixels, c, c],
          bias: bias(3),
          side: stored ? 'stored' : at(x),
          storage: x.storage,
        }),
      ];
    };
  }
}

/** `a·bᵀ + bias + side`; a and b are rows in f32. */
interface MatrixProduct {
  readonly a: Span;
  readonly b: Span;
  readonly y: Span;
  /** Rows of a, columns of both, rows of b. */
  readonly sizes: readonly [m: number, k: number, n: number];
  readonly bias?: DeviceTensor;
  /** What is added: what y has, or another tensor. */
  readonly side?: Span | 'stored';
  /** Of y and what is added; f32 when absent. */
  readonly storage?: Storage;
}

/** A product of matrices as a convolution of pixels, whose kernel takes rows for filters. */
function matrixProduct(
  { variant, limits }: ImageOptions,
  { a, b, y, sizes: [m, k, n], bias, side, storage = 'f32' }: MatrixProduct,
): Dispatch[] {
  const residual = side === undefined ? 'none' : side === 'stored' ? side : 'same';
  const shape: ConvolutionShape = {
    ...plainConvolution,
    frames: 1,
    input: 'f32',
    weight: null,
    output: storage,
    residual,
    side: storage,
    bias: bias !== undefined,
    wholeVectors: n % 4 === 0,
  };
  return convolutionDispatches({ limits }, variant, shape, {
    x: [a],
    weights: b,
    bias,
    y,
    side: side === 'stored' ? undefined : side,
    height: m,
    width: 1,
    outputHeight: m,
    outputWidth: 1,
    inputs: k,
    filters: n,
    kernel: [1, 1],
    pads: [0, 0],
    sideInputs: n,
  });
}

function operandOf(place: ImagePlace, listing: ImageListing): SlotOperand | DeviceTensor {
  if ('slot' in place) return slotOperand(place.slot, listing);
  return requireBound(listing.tensors.get(place.tensor), place.tensor);
}

function bound(weights: Bindings, name: string): DeviceTensor {
  return requireBound(weights[name], name);
}
