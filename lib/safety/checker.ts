import type { Backend } from '../gpu';
import type { Frame } from '../pipeline/latents';
import { frameBytes, type RgbaImage, rgbaBytes, type Squares } from '../pipeline/vision/squares';
import {
  checkpointOf,
  locateTensors,
  type ModelFolder,
  openTensorFile,
  type TensorFile,
} from '../weights';
import { parseCheckerConfig } from './checker-config';
import { readArchitecture } from './checker-weights';
import { type Classifier, scoreImages } from './classifier';
import { type VitNetwork, vitClassifier } from './vit';

/** Files of a checker in its folder; the processor's is of the transformers layout, and optional. */
export const checkerFiles = {
  config: 'config.json',
  weights: 'model.safetensors',
  processor: 'preprocessor_config.json',
} as const;

/** An image classifier that tells unsafe pictures from safe ones. */
export interface SafetyChecker {
  /** Repository or name, for the record. */
  readonly model: string;
  /** SHA-256 of the weights, in hex. */
  readonly sha256: string;
  /** A score from this on flags. */
  readonly threshold: number;
  /** The same for frames of a video whose images are clear; `threshold` when absent. */
  readonly frameThreshold?: number | undefined;
  /** Squares of an image, as values that stay valid. */
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
export async function openNetwork(folder: ModelFolder): Promise<VitNetwork> {
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
  return checkerOf(vitClassifier(await openNetwork(folder)), identity);
}

/** The checker that a classifier makes. */
export function checkerOf(
  classifier: Classifier,
  identity: Pick<SafetyChecker, 'model' | 'sha256'>,
): SafetyChecker {
  return {
    ...identity,
    threshold: classifier.threshold,
    squares: (image) => classifier.cut(rgbaBytes(image)),
    squaresOfFrame: (frame) => classifier.cut(frameBytes(frame)),
    score: (backend, images, signal, onSquares) =>
      scoreImages(classifier, backend, images, signal, onSquares),
  };
}
