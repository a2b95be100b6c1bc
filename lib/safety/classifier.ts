import { at, KinoraError } from '../contract';
import { type Backend, handleMessages } from '../gpu';
import type { ByteImage, Squares } from '../pipeline/vision/squares';

/** A network that tells unsafe pictures from safe ones, and what leads into it and out of it. */
export interface Classifier {
  /** A score from this on flags. */
  readonly threshold: number;
  /** The squares of an image that the network sees, as values that stay valid. */
  cut(image: ByteImage): Squares;
  /** Takes the memory of the network on a device. @param traced whether hidden states will be asked for */
  open(backend: Backend, signal: AbortSignal, traced?: boolean): Promise<ClassifierRun>;
  /** Probability, 0…1, that a square is unsafe, from its logits. */
  unsafe(logits: Float32Array): number;
}

/** A network on a device. */
export interface ClassifierRun {
  /** Logits of a square. @param onHidden called with hidden states by their names */
  logits(
    values: Squares['values'],
    onHidden?: (name: string, values: Float32Array) => void,
  ): Promise<Float32Array>;
  dispose(): void;
}

/**
 * Probability, 0…1, that each image is unsafe: the highest of its squares.
 *
 * @param onSquares told how many squares are done, of how many; first that none is
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
  const run = await classifier.open(backend, signal);
  try {
    onSquares(0, squares.length);
    for (const [i, { image, values }] of squares.entries()) {
      signal.throwIfAborted();
      const logits = await run.logits(values);
      scores[image] = Math.max(at(scores, image), probability(classifier, logits));
      onSquares(i + 1, squares.length);
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
