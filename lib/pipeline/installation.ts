import { type ComponentId, finisherParts, type Noise, type Precision } from '../contract';
import type { LoraNeed } from '../contract/v3';
import type { SafetensorsCheckpoint } from '../weights/formats/checkpoint';
import type { LocatedTensors } from '../weights/formats/located';
import type { ModelFolder } from '../weights/formats/source';
import type { TensorFile } from '../weights/formats/tensor-file';
import type { KeptFile } from '../weights/store/folder';
import type { ComponentRecipe } from '../weights/store/layout';

/** Components whose files are stored as they are. */
export const plainComponents = [
  'configuration',
  'safety_checker',
  'language_model',
  ...finisherParts,
] as const;

/** Whether a component's weights are converted; the files of the others are stored as they are. */
export function isConverted(component: ComponentId): boolean {
  return !plainComponents.some((plain) => plain === component);
}

/** A component's files, understood and checked; nothing but their headers has been read. */
export interface CheckedPart {
  readonly recipe: ComponentRecipe;
  /** By the names of the recipe. */
  readonly tensors: LocatedTensors;
  /** What a header brings besides weights and is to be kept with them: a tokenizer, metadata of a LoRA. */
  readonly files?: readonly KeptFile[];
  /** Whether only the bytes of its tensors are fetched. The SHA-256 of the file is not checked then. */
  readonly needsPart?: boolean;
}

/** The plan that a model family makes of a configuration. */
export interface ModelPlan {
  /**
   * Checks every tensor of a component's files against the architecture: a converted component's.
   *
   * @throws KinoraError `MODEL_WRONG_KIND`, `TENSOR_MISSING`, `TENSOR_SHAPE`, `TENSOR_EXTRA`;
   * `MODEL_FILE_MISSING` when neither configuration nor files have something that it cannot run without
   */
  check(component: ComponentId, files: readonly TensorFile[], precision: Precision): CheckedPart;
  /**
   * Bytes that a component takes in the store; null where it depends on its file.
   *
   * @param blocks whether its source is quantised in blocks, as GGUF files are
   */
  storedBytes(component: ComponentId, precision: Precision, blocks: boolean): number | null;
}

/** A LoRA file that fits a model, by its header. */
export interface LoraFit {
  /** Largest rank of its adapters. */
  readonly rank: number;
  /** What it was made for, where its family knows that better than by the name of the model. */
  readonly base?: string;
  /** The transformer of a pair that it is for; absent where it is for all that there are. */
  readonly noise?: Noise;
  /** How many of its tensors are for parts that the model does not have: they have no effect. */
  readonly unused?: number;
}

/** The kind of a LoRA file, by its header. */
export interface LoraFacts extends LoraFit {
  readonly base: string;
  readonly triggerWords: readonly string[];
}

/** A model that a LoRA may be made for. */
export interface LoraBase {
  readonly name: string;
  readonly installation: ModelInstallation;
  readonly configuration: ModelFolder;
}

/** The kind of a weight file, as far as its header tells. */
export interface RecognisedFile {
  /** With its article: "a LoRA", "the VAE of Wan2.1". Empty where nothing is known of it. */
  readonly name: string;
  /** Which part of the model it may be; its sizes are still to be checked. */
  readonly component: ComponentId | null;
  /** What makes a part of the model of it; absent where nothing does. */
  readonly remedy?: string;
}

/** What the library asks of a model family: the library knows files, the family knows the model. */
export interface ModelInstallation {
  /** Paths of the files that the configuration consists of. */
  readonly configurationFiles: readonly string[];
  /** Those of them that the header of a weight file may have instead. */
  readonly optionalFiles: readonly string[];
  /** The need of those jobs with LoRAs that its models take; absent where the API knows none of its LoRAs. */
  readonly loraNeed?: LoraNeed;
  /** @throws KinoraError `MODEL_CONFIG_INVALID`, `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID` */
  plan(configuration: ModelFolder): Promise<ModelPlan>;
  /** What a weight file is, and which part of a model it may be, by its tensors; if need be by its path. */
  recognise(file: TensorFile): RecognisedFile;
  /**
   * Checks a LoRA's header against a model.
   *
   * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
   */
  inspectLora(
    checkpoint: SafetensorsCheckpoint,
    name: string,
    configuration: ModelFolder,
  ): Promise<LoraFit>;
}

/** What the library knows of the model families, by the name that manifests use. */
export type ModelInstallations = Readonly<
  Record<string, { readonly installation: ModelInstallation }>
>;
