import {
  filterDims,
  type Graph,
  type ImageMatch,
  imageSize,
  imagesOf,
  type Value,
  weightsKey,
} from '../../graph';
import type { Backend } from '../backend';
import { requireBound } from '../executor';
import {
  type ImageExecutor,
  type ImageWeights,
  readsTogether,
  scheduleOf,
} from '../image-executor';
import { handleMessages } from '../messages';
import { TensorPool } from '../pool';
import type { DeviceTensor } from '../tensor';
import { imageGraph } from './image-graphs';

type Tensor = DeviceTensor<'float32'>;

/**
 * Runs graphs of images by ONNX Runtime, in f32: a session for each kind of match, because the runtime frees a run's
 * intermediates only at its end. The state of a causal convolution is two images of partial sums.
 */
export class RuntimeImages implements ImageExecutor {
  /** Images on their way through the network. */
  readonly #images: TensorPool;
  readonly #sums: TensorPool;
  /** P, and Q of three taps, of causal convolutions, by the key of their weights. */
  readonly #past = new Map<string, readonly Tensor[]>();

  constructor(
    readonly backend: Backend,
    readonly weights: ImageWeights,
    readonly signal?: AbortSignal,
  ) {
    this.#images = new TensorPool(backend, 'activations');
    this.#sums = new TensorPool(backend, 'caches');
  }

  async *frames(
    graph: Graph,
    inputs: Readonly<Record<string, Float32Array>>,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined> {
    const { backend, signal } = this;
    const { matches, results, lastReads } = scheduleOf(graph);
    const tensors = new Map<Value, Tensor>();
    for (const value of graph.values) {
      if (value.call.op !== 'input') continue;
      const tensor = this.#take(value);
      backend.write(tensor, requireBound(inputs[value.call.name], value.call.name));
      tensors.set(value, tensor);
    }
    const staged: Promise<Float32Array<ArrayBuffer>>[] = [];
    for (const match of matches) {
      signal?.throwIfAborted();
      const { value } = match;
      const y = this.#take(value);
      tensors.set(value, y);
      await this.#run(match, tensors, y);
      for (const image of new Set(imagesOf(match))) {
        const tensor = tensors.get(image);
        if (lastReads.get(image) === match && tensor) this.#images.give(tensor);
      }
      if (results.has(value)) staged.push(backend.stage(y));
      if (!readsTogether(graph)) yield* await backend.collect(staged.splice(0));
      // What is read again is freed by its last reader.
      if (!lastReads.has(value)) this.#images.give(y);
      // A cancellation may come in.
      await handleMessages();
    }
    yield* await backend.collect(staged);
  }

  async #run(match: ImageMatch, tensors: ReadonlyMap<Value, Tensor>, y: Tensor): Promise<void> {
    const { backend, weights } = this;
    const key = weightsKey(match);
    const of = (value: Value) => requireBound(tensors.get(value), value.call.op);
    const residual = match.kind === 'convolution' ? match.residual : null;
    const bound = {
      ...requireBound(weights.get(key), key),
      x: of(match.x),
      ...(residual && { residual: of(residual.side) }),
    };
    const graph = imageGraph(match, backend.convLayout);
    if (match.kind === 'attention' || match.layer.taps === 1) {
      return backend.run(graph, bound, { y });
    }
    // A run may not write what it reads: the next sums go into other tensors, and these become free.
    const sums = this.#sums;
    const names = match.layer.taps === 3 ? ['p', 'q'] : ['p'];
    const dims = [...y.dims.slice(0, 3), filterDims(match.layer)[0]];
    const past = this.#past.get(key) ?? names.map(() => sums.zero(dims));
    const next = names.map(() => sums.take(dims));
    const named = (tensors: readonly Tensor[], end = '') =>
      Object.fromEntries(tensors.map((tensor, index) => [`${names[index]}${end}`, tensor]));
    await backend.run(graph, { ...bound, ...named(past) }, { y, ...named(next, 'Next') });
    this.#past.set(key, next);
    sums.give(...past);
  }

  #take(value: Value): Tensor {
    const { height, width, channels } = imageSize(value);
    return this.#images.take([1, height, width, channels]);
  }

  reset(): void {
    this.#past.clear();
    // What layers know of the past is made anew, and therefore zero, with the next clip's first frame.
    this.#sums.dispose();
    this.#images.reclaim();
  }

  dispose(): void {
    this.#past.clear();
    this.#sums.dispose();
    this.#images.dispose();
  }
}
