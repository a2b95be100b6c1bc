import { at, KinoraError } from '../contract';
import { type Backend, type Bindings, Scope } from '../gpu';
import type { Frame } from '../pipeline/latents';
import {
  type Checkpoint,
  checkpointOf,
  locateTensors,
  type ModelFolder,
  openTensorFile,
  type TensorFile,
} from '../weights';
import { classifierGraph, patchify } from './classifier';
import { type CheckerConfig, parseCheckerConfig } from './config';
import {
  cutSquares,
  frameBytes,
  normalise,
  type RgbaImage,
  rgbaBytes,
  type Squares,
} from './preprocess';
import {
  type Architecture,
  labelCount,
  loadWeights,
  patchCount,
  patchValues,
  readArchitecture,
} from './weights';

/** Files of a checker in its folder; the processor's is of the transformers layout, and optional. */
export const checkerFiles = {
  config: 'config.json',
  weights: 'model.safetensors',
  processor: 'preprocessor_config.json',
} as const;

/** Squares that a device computes at once. */
export const batchSize = 4;

/** An image classifier that tells unsafe pictures from safe ones. */
export interface SafetyChecker {
  /** Repository or name, for the record. */
  readonly model: string;
  /** SHA-256 of the weights, in hex. */
  readonly sha256: string;
  /** Squares of an image, as bytes that stay valid. */
  squares(image: RgbaImage): Squares;
  /** Squares of a decoded frame. */
  squaresOfFrame(frame: Frame): Squares;
  /**
   * Probability, 0…1, that each image is unsafe: the highest of its squares. Weights are read once per call;
   * nothing of it stays on the device.
   *
   * @param onSquares told how many squares are done, of how many
   * @throws KinoraError `CHECK_FAILED` when a result is not a finite number; what files and device throw
   */
  score(
    backend: Backend,
    images: readonly Squares[],
    signal: AbortSignal,
    onSquares?: (done: number, total: number) => void,
  ): Promise<number[]>;
}

/** A checker whose files were read: what its network is run with. */
export interface CheckerNetwork {
  readonly config: CheckerConfig;
  readonly vit: Architecture;
  readonly checkpoint: Pick<Checkpoint, 'read'>;
}

/**
 * Checks the files of a checker before they are installed; no weight is read.
 *
 * @param config content of `config.json`
 * @param file header of `model.safetensors`
 * @throws KinoraError `MODEL_CONFIG_INVALID`, `TENSOR_MISSING`, `TENSOR_SHAPE`
 */
export function checkCheckerFiles(config: unknown, file: TensorFile): void {
  readArchitecture(
    parseCheckerConfig(config),
    checkpointOf('safety checker', locateTensors([file])),
  );
}

/**
 * Opens a checker's files: `config.json` and `model.safetensors`, in the layout of timm or of transformers.
 *
 * @throws KinoraError `MODEL_CONFIG_INVALID`, `TENSOR_MISSING`, `TENSOR_SHAPE`, `MODEL_FILE_MISSING`,
 * `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`
 */
export async function openNetwork(folder: ModelFolder): Promise<CheckerNetwork> {
  const { processor } = checkerFiles;
  const config = parseCheckerConfig(
    await folder.json(checkerFiles.config),
    (await folder.exists(processor)) ? await folder.json(processor) : {},
  );
  const file = await openTensorFile(await folder.open(checkerFiles.weights));
  const checkpoint = checkpointOf('safety checker', locateTensors([file]));
  return { config, vit: readArchitecture(config, checkpoint), checkpoint };
}

/**
 * Opens a checker.
 *
 * @param identity what the record names: repository, and SHA-256 of the weights as the store knows it
 * @throws KinoraError as {@link openNetwork}
 */
export async function openSafetyChecker(
  folder: ModelFolder,
  identity: { readonly model: string; readonly sha256: string },
): Promise<SafetyChecker> {
  const network = await openNetwork(folder);
  const { preprocessing } = network.config;
  return {
    ...identity,
    squares: (image) => cutSquares(rgbaBytes(image), preprocessing),
    squaresOfFrame: (frame) => cutSquares(frameBytes(frame), preprocessing),
    score: (backend, images, signal, onSquares) =>
      scoreImages(network, backend, images, signal, onSquares),
  };
}

async function scoreImages(
  network: CheckerNetwork,
  backend: Backend,
  images: readonly Squares[],
  signal: AbortSignal,
  onSquares: (done: number, total: number) => void = () => undefined,
): Promise<number[]> {
  const { size } = network.config.preprocessing;
  const squareBytes = 3 * size * size;
  const squares = images.flatMap(({ bytes, count }, image) =>
    Array.from({ length: count }, (_, i) => ({
      image,
      bytes: bytes.subarray(i * squareBytes, (i + 1) * squareBytes),
    })),
  );
  const scores = new Array<number>(images.length).fill(0);
  if (squares.length === 0) return scores;
  const run = await NetworkRun.start(network, backend, Math.min(batchSize, squares.length), signal);
  try {
    for (let start = 0; start < squares.length; start += run.batch) {
      signal.throwIfAborted();
      const part = squares.slice(start, start + run.batch);
      const bytes = new Uint8ClampedArray(run.batch * squareBytes); // unused places stay black
      for (const [i, square] of part.entries()) bytes.set(square.bytes, i * squareBytes);
      await run.compute(normalise(bytes, network.config.preprocessing));
      const logits = await backend.read(run.logits);
      for (const [i, { image }] of part.entries()) {
        const probability = unsafeProbability(network.config, logits, i);
        scores[image] = Math.max(at(scores, image), probability);
      }
      onSquares(start + part.length, squares.length);
      await backend.settle();
    }
    return scores;
  } finally {
    run.dispose();
    await backend.trim();
  }
}

/** Softmax over the two logits of square `i`. @throws KinoraError `CHECK_FAILED` */
export function unsafeProbability(
  { unsafeIndex }: CheckerConfig,
  logits: Float32Array,
  i: number,
): number {
  const unsafe = at(logits, labelCount * i + unsafeIndex);
  const safe = at(logits, labelCount * i + 1 - unsafeIndex);
  // Both must be finite: of an infinite one the softmax would still be a number.
  if (!Number.isFinite(unsafe) || !Number.isFinite(safe)) {
    throw new KinoraError('CHECK_FAILED', 'The safety checker gave a number that is not finite.');
  }
  return 1 / (1 + Math.exp(safe - unsafe));
}

/** The network with its weights on the device, for batches of one size. */
export class NetworkRun {
  private constructor(
    readonly scope: Scope,
    readonly network: CheckerNetwork,
    readonly batch: number,
    readonly inputs: Bindings,
  ) {
    this.patches = scope.float32(
      [batch * patchCount(network.vit), patchValues(network.vit)],
      'activations',
    );
    this.logits = scope.float32([batch, labelCount], 'activations');
    this.#graph = classifierGraph(network.vit, batch);
  }

  readonly patches;
  readonly logits;
  readonly #graph;

  static async start(
    network: CheckerNetwork,
    backend: Backend,
    batch: number,
    signal: AbortSignal,
  ): Promise<NetworkRun> {
    const scope = new Scope(backend);
    try {
      const { config, vit, checkpoint } = network;
      const weights = await loadWeights(scope, config.layout, vit, checkpoint, signal);
      return new NetworkRun(scope, network, batch, weights);
    } catch (error) {
      scope.dispose();
      throw error;
    }
  }

  /** Computes the logits of pixels [batch, 3, size, size]. */
  async compute(pixels: Float32Array): Promise<void> {
    const { backend } = this.scope;
    backend.write(this.patches, patchify(pixels, this.network.vit));
    const inputs = { ...this.inputs, patches: this.patches };
    await backend.run(this.#graph, inputs, { logits: this.logits });
  }

  dispose(): void {
    this.scope.dispose();
  }
}
