import { at, KinoraError } from '../contract';
import {
  type Backend,
  type Bindings,
  type DeviceTensor,
  elementCount,
  handleMessages,
  Scope,
} from '../gpu';
import type { Graph, Port } from '../onnx';
import type { ByteImage, Squares } from './preprocess';

/** Squares that a device computes at once. */
const batchSize = 4;

/** A network that tells unsafe pictures from safe ones, and what leads into it and out of it. */
export interface Classifier {
  /** A score from this on flags. */
  readonly threshold: number;
  /** The squares of an image that the network sees, as values that stay valid. */
  cut(image: ByteImage): Squares;
  /**
   * The network for a batch of squares, with weights as inputs. Its input `pixels` has one square after another,
   * and so has its result `logits`.
   *
   * @param traced also gives hidden states
   */
  graph(batch: number, traced?: boolean): Graph;
  /** Reads all weights into device memory of a scope. */
  loadWeights(scope: Scope, signal: AbortSignal): Promise<Bindings>;
  /** What the input `pixels` takes for the values of a square. */
  input(values: Squares['values']): Float32Array;
  /** Probability, 0…1, that a square is unsafe, from its logits. */
  unsafe(logits: Float32Array): number;
}

/** A network with its weights on the device, for batches of one size. */
export class ClassifierRun {
  private constructor(
    readonly scope: Scope,
    readonly graph: Graph,
    readonly weights: Bindings,
    readonly pixels: DeviceTensor<'float32'>,
    /** By name: `logits`, and hidden states where it is traced. */
    readonly outputs: Readonly<Record<string, DeviceTensor<'float32'>>>,
  ) {}

  static async start(
    classifier: Classifier,
    backend: Backend,
    batch: number,
    signal: AbortSignal,
    traced = false,
  ): Promise<ClassifierRun> {
    const scope = new Scope(backend);
    try {
      const weights = await classifier.loadWeights(scope, signal);
      const graph = classifier.graph(batch, traced);
      const port = graph.inputs.find(({ name }) => name === 'pixels');
      if (!port) throw new TypeError(`${graph.name} has no input pixels.`);
      const tensor = ({ dims }: Port) => scope.float32(dims as number[], 'activations');
      const outputs = Object.fromEntries(graph.outputs.map((to) => [to.name, tensor(to)]));
      return new ClassifierRun(scope, graph, weights, tensor(port), outputs);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  /** Computes the outputs. @param pixels of the whole batch, as {@link Classifier.input} gives them */
  async compute(pixels: Float32Array): Promise<void> {
    const { backend } = this.scope;
    backend.write(this.pixels, pixels);
    await backend.run(this.graph, { ...this.weights, pixels: this.pixels }, this.outputs);
  }

  /** Reads an output. */
  async read(name: string): Promise<Float32Array> {
    const tensor = this.outputs[name];
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
  const batch = Math.min(batchSize, squares.length);
  const run = await ClassifierRun.start(classifier, backend, batch, signal);
  try {
    onSquares(0, squares.length);
    for (let start = 0; start < squares.length; start += batch) {
      signal.throwIfAborted();
      const part = squares.slice(start, start + batch);
      const pixels = new Float32Array(elementCount(run.pixels.dims)); // unused places stay zero
      for (const [i, { values }] of part.entries()) {
        pixels.set(classifier.input(values), (i * pixels.length) / batch);
      }
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
