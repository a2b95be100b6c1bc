import { type Graph, type ImageMatch, matchImages, weightsKey } from '../../graph';
import { type Backend, type Bindings, Scope } from '../backend';
import { requireBound } from '../executor';
import { type ImageExecutor, type ImageWeights, readsTogether } from '../image-executor';
import type { Compute, Dispatch, Kernel } from '../kernels';
import type { DeviceTensor } from '../tensor';
import { type Bin, binTensors, Lifetimes, placeSlots, type Slot } from './arena';
import {
  compileImages,
  FrameHistory,
  type ImageListing,
  type ImageOptions,
  type ImageStep,
  resultName,
  tensorKey,
} from './image-steps';
import { placeholder } from './placeholders';
import { checkFits, compileOn } from './refusal';

/** Frames after which a causal layer has all that it sees, and the memory of one more. */
const fullHistory = 3;

/** Graphs of images as dispatches, and the memory that they share. They run one after the other, in any order. */
export class ImageProgram {
  readonly slots: readonly Slot[];
  /** Buffers of the images between dispatches. */
  readonly bins: readonly Bin[];
  /** Bytes of the tensors of inputs and results, by their keys. */
  readonly tensors: ReadonlyMap<string, number>;
  /** Bytes of the frames that causal layers know of the past. */
  readonly frames: readonly number[];
  /** What has to be compiled, with a graph that it is for. */
  readonly kernels = new Map<Kernel, Graph>();
  readonly #steps = new Map<Graph, readonly ImageStep[]>();

  /**
   * Compiles graphs; no device is needed for it.
   *
   * @param graphs in the order in which a clip's frames go through them, some more than once; the last one computes
   *   all later frames
   * @param weights sizes of a match's weights
   * @throws Refusal where no kernel computes a call, or a binding would be larger than the device allows
   */
  constructor(
    graphs: readonly Graph[],
    readonly options: ImageOptions,
    weights: (match: ImageMatch) => Bindings,
    largestBuffer = Number.POSITIVE_INFINITY,
  ) {
    const lifetimes = new Lifetimes();
    const tensors = new Map<string, number>();
    const matches = new Map<string, ImageMatch>();
    for (const graph of new Set(graphs)) {
      this.#steps.set(graph, compileImages(graph, options, lifetimes));
      const inputs = graph.values.flatMap((value) =>
        value.call.op === 'input' ? [[value.call.name, value] as const] : [],
      );
      const results = [...graph.outputs.values()].map(({ value }) => [resultName, value] as const);
      for (const [name, value] of [...inputs, ...results]) {
        const elements = value.dims.reduce<number>((product, size) => product * Number(size), 1);
        tensors.set(tensorKey(name, value), 4 * elements);
      }
      for (const match of matchImages(graph)) matches.set(weightsKey(match), match);
    }
    this.tensors = tensors;
    this.slots = lifetimes.slots;
    this.bins = placeSlots(this.slots, largestBuffer);

    const frames: number[] = [];
    const bound = new Map([...matches].map(([key, match]) => [key, weights(match)]));
    const listing = this.#withoutDevice(bound, (bytes) => frames.push(bytes));
    const last = graphs.at(-1);
    const clip = [...graphs, ...(last ? Array.from({ length: fullHistory }, () => last) : [])];
    for (const graph of clip) {
      for (const { list } of this.stepsOf(graph)) {
        for (const job of list(listing)) this.#check(graph, job);
      }
    }
    this.frames = frames;
  }

  /** Bytes of its buffers on a device that images are in. */
  get buffers(): readonly number[] {
    return [...this.bins.map(({ bytes }) => bytes), ...this.tensors.values()];
  }

  stepsOf(graph: Graph): readonly ImageStep[] {
    const steps = this.#steps.get(graph);
    if (!steps) throw new TypeError(`${graph.name} is not of this program`);
    return steps;
  }

  /** The dispatches of graphs, with tensors that have sizes only. */
  listWithoutDevice(graphs: readonly Graph[], weights: ImageWeights): (readonly Dispatch[])[] {
    const listing = this.#withoutDevice(weights, () => undefined);
    return graphs.map((graph) => this.stepsOf(graph).flatMap(({ list }) => list(listing)));
  }

  #withoutDevice(weights: ImageWeights, onFrame: (bytes: number) => void): ImageListing {
    return {
      bins: binTensors(this.bins, (dims) => placeholder('int32', dims)),
      tensors: new Map(
        [...this.tensors].map(([key, bytes]) => [key, placeholder('float32', [bytes / 4])]),
      ),
      weights: (key) => requireBound(weights.get(key), key),
      history: new FrameHistory((bytes) => {
        onFrame(bytes);
        return placeholder('int32', [bytes / 4]);
      }),
      copy: () => undefined,
    };
  }

  #check(graph: Graph, job: Dispatch): void {
    this.kernels.set(job.kernel, graph);
    checkFits(graph, job, this.options.limits);
  }

  /**
   * Compiles its kernels on a device.
   *
   * @param others kernels that prepare its weights
   * @throws Refusal for one that the device does not compile
   */
  compileOn(compute: Compute, others: readonly Kernel[] = []): Promise<void> {
    return compileOn(compute, this.kernels, others);
  }
}

/** A compiled program on a device: computes its graphs by kernels of our own. */
export class KernelImages implements ImageExecutor {
  readonly #images: Scope;
  readonly #frames: Scope;
  readonly #listing: ImageListing;
  readonly #tensors = new Map<string, DeviceTensor<'float32'>>();

  /**
   * Takes the program's memory, but for that of frames of the past, which comes with them.
   *
   * @throws KinoraError `OUT_OF_MEMORY`; then nothing stays on the device
   */
  constructor(
    readonly backend: Backend,
    readonly compute: Compute,
    readonly program: ImageProgram,
    weights: ImageWeights,
    readonly signal?: AbortSignal,
  ) {
    this.#images = new Scope(backend);
    this.#frames = new Scope(backend);
    try {
      for (const [key, bytes] of program.tensors) {
        this.#tensors.set(key, this.#images.float32([bytes / 4], 'activations'));
      }
      this.#listing = {
        bins: binTensors(program.bins, (dims) => this.#images.tensor('int32', dims, 'activations')),
        tensors: this.#tensors,
        weights: (key) => requireBound(weights.get(key), key),
        history: new FrameHistory((bytes) => this.#frames.tensor('int32', [bytes / 4], 'caches')),
        copy: (from, to, bytes) => {
          const { tensor, byteOffset = 0 } = 'tensor' in from ? from : { tensor: from };
          backend.copy(tensor, byteOffset / 4, to, 0, bytes / 4);
        },
      };
    } catch (error) {
      this.dispose();
      throw error;
    }
  }

  async *frames(
    graph: Graph,
    inputs: Readonly<Record<string, Float32Array>>,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { backend, compute, program, signal } = this;
    for (const value of graph.values) {
      if (value.call.op !== 'input') continue;
      const { name } = value.call;
      backend.write(this.#tensor(tensorKey(name, value)), requireBound(inputs[name], name));
    }
    const staged: Promise<Float32Array<ArrayBuffer>>[] = [];
    try {
      for (const { list, result } of program.stepsOf(graph)) {
        signal?.throwIfAborted();
        await compute.dispatch(list(this.#listing));
        const output = result === null ? undefined : graph.outputs.get(result);
        if (!output) continue;
        staged.push(backend.stage(this.#tensor(tensorKey(resultName, output.value))));
        if (!readsTogether(graph)) yield* await backend.collect(staged.splice(0));
      }
      yield* await backend.collect(staged.splice(0));
    } finally {
      // Behind an error the tensors are freed.
      await Promise.allSettled(staged);
    }
  }

  #tensor(key: string): DeviceTensor<'float32'> {
    return requireBound(this.#tensors.get(key), key);
  }

  reset(): void {
    this.#listing.history.reset();
  }

  dispose(): void {
    this.#images.dispose();
    this.#frames.dispose();
  }
}
