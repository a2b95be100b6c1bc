import { at, KinoraError } from '../contract';
import { type Backend, type Bindings, type DeviceTensor, handleMessages, Scope } from '../gpu';
import type { Graph, Port } from '../onnx';
import type { ByteImage, Squares } from './preprocess';

/** A network that tells unsafe pictures from safe ones, and what leads into it and out of it. */
export interface Classifier {
  /** A score from this on flags. */
  readonly threshold: number;
  /** The squares of an image that the network sees, as values that stay valid. */
  cut(image: ByteImage): Squares;
  /** Squares that are computed at once, at most. */
  readonly batchSize: number;
  /**
   * Loads the network.
   *
   * @param batch squares that are computed at once
   * @param traced whether hidden states are results, too
   */
  start(
    backend: Backend,
    batch: number,
    signal: AbortSignal,
    traced?: boolean,
  ): Promise<ClassifierRun>;
  /** What the network takes for the values of a square. */
  input(values: Squares['values']): Float32Array;
  /** Probability, 0…1, that a square is unsafe, from its logits. */
  unsafe(logits: Float32Array): number;
}

/** A network with its weights, for batches of one size. */
export interface ClassifierRun {
  /** Names of results: `logits` of one square after another, and hidden states where it is traced. */
  readonly outputs: readonly string[];
  /** Computes all results. @param pixels of the whole batch, as {@link Classifier.input} gives them */
  compute(pixels: Float32Array): Promise<void>;
  read(output: string): Promise<Float32Array>;
  dispose(): void;
}

/** What a network of the runtime is made of. */
export interface RuntimeNetwork {
  /** Of a batch of squares, with weights as inputs; it reads `pixels` and gives `logits`. */
  graph(batch: number, traced: boolean): Graph;
  /** Reads all weights into device memory of a scope. */
  loadWeights(scope: Scope, signal: AbortSignal): Promise<Bindings>;
}

/** A network that the runtime computes. */
export class RuntimeRun implements ClassifierRun {
  private constructor(
    readonly scope: Scope,
    readonly graph: Graph,
    readonly weights: Bindings,
    readonly pixels: DeviceTensor<'float32'>,
    readonly results: Readonly<Record<string, DeviceTensor<'float32'>>>,
  ) {}

  static async start(
    network: RuntimeNetwork,
    backend: Backend,
    batch: number,
    signal: AbortSignal,
    traced = false,
  ): Promise<RuntimeRun> {
    const scope = new Scope(backend);
    try {
      const weights = await network.loadWeights(scope, signal);
      const graph = network.graph(batch, traced);
      const port = graph.inputs.find(({ name }) => name === 'pixels');
      if (!port) throw new TypeError(`${graph.name} has no input pixels.`);
      const tensor = ({ dims }: Port) => scope.float32(dims as number[], 'activations');
      const outputs = Object.fromEntries(graph.outputs.map((to) => [to.name, tensor(to)]));
      return new RuntimeRun(scope, graph, weights, tensor(port), outputs);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  get outputs(): readonly string[] {
    return Object.keys(this.results);
  }

  async compute(pixels: Float32Array): Promise<void> {
    const { backend } = this.scope;
    backend.write(this.pixels, pixels);
    await backend.run(this.graph, { ...this.weights, pixels: this.pixels }, this.results);
  }

  async read(name: string): Promise<Float32Array> {
    const tensor = this.results[name];
    if (!tensor) throw new TypeError(`There is no output ${name}.`);
    return this.scope.backend.read(tensor);
  }

  dispose(): void {
    this.scope.dispose();
  }
}

/**
 * Probability, 0…1, that each image is unsafe: the highest of its squares.
 *
 * @param onSquares told how many squares are done, of how many; first that the network is ready and none is
 * @throws KinoraError `CHECK_FAILED` when a result is not a finite number; what files and device throw
 */
export async function scoreImages(
  classifier: Classifier,
  backend: Backend,
  images: readonly Squares[],
  signal: AbortSignal,
  onSquares: (done: number, total: number) => void = () => undefined,
): Promise<number[]> {
  const squares = images.flatMap(({ values, count }, image) => {
    const length = values.length / count;
    return Array.from({ length: count }, (_, i) => ({
      image,
      values: values.subarray(i * length, (i + 1) * length),
    }));
  });
  const scores = new Array<number>(images.length).fill(0);
  if (squares.length === 0) return scores;
  const batch = Math.min(classifier.batchSize, squares.length);
  const run = await classifier.start(backend, batch, signal);
  try {
    onSquares(0, squares.length);
    for (let start = 0; start < squares.length; start += batch) {
      signal.throwIfAborted();
      const part = squares.slice(start, start + batch);
      const inputs = part.map(({ values }) => classifier.input(values));
      const length = at(inputs, 0).length;
      const pixels = new Float32Array(batch * length); // unused places stay zero
      for (const [i, input] of inputs.entries()) pixels.set(input, i * length);
      await run.compute(pixels);
      const logits = await run.read('logits');
      for (const [i, { image }] of part.entries()) {
        const own = logits.subarray((i * logits.length) / batch, ((i + 1) * logits.length) / batch);
        scores[image] = Math.max(at(scores, image), probability(classifier, own));
      }
      onSquares(start + part.length, squares.length);
      await handleMessages();
    }
    return scores;
  } finally {
    run.dispose();
    await backend.trim();
  }
}

/** All logits must be finite: of an infinite one the softmax would still be a number. */
function probability(classifier: Classifier, logits: Float32Array): number {
  if (logits.every(Number.isFinite)) return classifier.unsafe(logits);
  throw new KinoraError('CHECK_FAILED', 'The safety checker gave a number that is not finite.');
}
