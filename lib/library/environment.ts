import type {
  ComponentId,
  LibrarySnapshot,
  ModelManifest,
  Precision,
  StorageReport,
  WorkElsewhere,
} from '../contract';
import type { SafetensorsCheckpoint } from '../weights/formats/checkpoint';
import type { LocatedTensors } from '../weights/formats/located';
import type { ModelFolder } from '../weights/formats/source';
import type { TensorFile } from '../weights/formats/tensor-file';
import type { HubOptions } from '../weights/hub';
import type { KeptFile, StoreFolder } from '../weights/store/folder';
import type { SourceHash } from '../weights/store/hashes';
import type { ComponentRecipe } from '../weights/store/recipe';

/** A component that holds weights. */
export type WeightComponent = Exclude<ComponentId, 'configuration'>;

/** A component's files, understood and checked; nothing but their headers has been read. */
export interface CheckedPart {
  readonly recipe: ComponentRecipe;
  /** By the names of the recipe. */
  readonly tensors: LocatedTensors;
  /** What a header brings besides weights and is to be kept with them: a tokenizer. */
  readonly files?: readonly KeptFile[];
}

/** What the model family makes of a configuration. */
export interface ModelPlan {
  /**
   * Checks every tensor of a component's files against the architecture.
   *
   * @throws KinoraError `MODEL_WRONG_KIND`, `TENSOR_MISSING`, `TENSOR_SHAPE`, `TENSOR_EXTRA`;
   * `MODEL_FILE_MISSING` when neither configuration nor files have something that it cannot run without
   */
  check(
    component: WeightComponent,
    files: readonly TensorFile[],
    precision: Precision,
  ): CheckedPart;
  /**
   * Bytes that a component takes in the store; null where it depends on its file.
   *
   * @param blocks whether its source is quantised in blocks, as GGUF files are
   */
  storedBytes(component: WeightComponent, precision: Precision, blocks: boolean): number | null;
}

/** What a LoRA file is, by its header. */
export interface LoraFacts {
  readonly rank: number;
  readonly base: string;
  readonly triggerWords: readonly string[];
}

/** What the library asks of a model family: the library knows files, the family knows the model. */
export interface Architecture {
  /** Paths of the files that the configuration consists of. */
  readonly configurationFiles: readonly string[];
  /** Those of them that the header of a weight file may have instead. */
  readonly optionalFiles: readonly string[];
  /** @throws KinoraError `MODEL_CONFIG_INVALID`, `MODEL_FILE_MISSING`, `MODEL_FILE_INVALID` */
  plan(configuration: ModelFolder): Promise<ModelPlan>;
  /** What a weight file is, and which part of a model it may be. */
  recognise(file: TensorFile): { readonly name: string; readonly component: ComponentId | null };
  /**
   * Checks a LoRA's header against the models there are.
   *
   * @param models name and configuration of each
   * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`
   */
  inspectLora(
    checkpoint: SafetensorsCheckpoint,
    name: string,
    models: readonly { readonly name: string; readonly configuration: ModelFolder }[],
  ): Promise<LoraFacts>;
}

/** What a tab tells the others. */
export type LibraryMessage =
  /** It has started: those that work on a model say so once more. */
  | { readonly type: 'hello' }
  /** It works on a model. */
  | { readonly type: 'working'; readonly id: string; readonly progress: WorkElsewhere }
  /** It has changed something on disk. */
  | { readonly type: 'changed' };

/** The other tabs. */
export interface LibraryChannel {
  post(message: LibraryMessage): void;
  listen(listener: (message: LibraryMessage) => void): void;
}

/** Dependencies of the library. */
export interface LibraryEnvironment {
  readonly architecture: Architecture;
  /** Folder of all models. */
  readonly models: StoreFolder;
  readonly loras: StoreFolder;
  /** Manifests that come with Kinora, each with the folder of its config files, if it has one. */
  listed(): Promise<readonly ListedModel[]>;
  storage(): Promise<StorageReport>;
  /** Runs the work under the exclusive lock; null when another tab holds it. */
  tryLock<T>(name: string, work: () => Promise<T>): Promise<{ readonly value: T } | null>;
  /** Waits for the exclusive lock and runs the work under it. */
  withLock<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Resolves when the lock is free. */
  whenFree(name: string): Promise<void>;
  readonly channel: LibraryChannel;
  /** Resolves when the browser finds a connection again, or after so many milliseconds. */
  online(afterMs: number, signal: AbortSignal): Promise<void>;
  /** Starts a thread that hashes what is fetched; in the library's own when absent. */
  startHash?(): HashThread;
  readonly hubOptions?: HubOptions;
  /** Source bytes that are converted and noted together; for tests. */
  readonly unitLimit?: number;
  /** Base address of the hub until another one is set. */
  readonly defaultHub?: string;
}

/** A thread for one running SHA-256: one installation at a time. */
export interface HashThread {
  readonly hash: SourceHash;
  /** Ends the thread. */
  close(): void;
}

export interface ListedModel {
  readonly manifest: ModelManifest;
  /** Its `base`; null without one. */
  readonly base: ModelFolder | null;
}

/** Called with each change. */
export type SnapshotListener = (snapshot: LibrarySnapshot) => void;
