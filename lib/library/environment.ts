import type { LibrarySnapshot, ModelManifest, StorageReport, WorkProgress } from '../contract';
import type { ModelInstallations } from '../pipeline/installation';
import type { ModelFolder } from '../weights/formats/source';
import type { TensorFile } from '../weights/formats/tensor-file';
import type { HubOptions } from '../weights/hub';
import type { StoreFolder } from '../weights/store/folder';
import type { SourceHash } from '../weights/store/hashes';

/** A message of a tab to the others. */
export type LibraryMessage =
  /** It has started: those that work on a model say so once more. */
  | { readonly type: 'hello' }
  /** It works on a model. */
  | { readonly type: 'working'; readonly id: string; readonly progress: WorkProgress }
  /** It has changed something on disk. */
  | { readonly type: 'changed' };

/** The other tabs. */
export interface LibraryChannel {
  post(message: LibraryMessage): void;
  listen(listener: (message: LibraryMessage) => void): void;
}

/** Dependencies of the library. */
export interface LibraryEnvironment {
  readonly families: ModelInstallations;
  /**
   * Checks the configuration and the header of a safety checker.
   *
   * @throws KinoraError `MODEL_CONFIG_INVALID`, `TENSOR_…`
   */
  checkSafetyChecker(config: unknown, weights: TensorFile): void;
  /** Folder of all models. */
  readonly models: StoreFolder;
  readonly loras: StoreFolder;
  /** Folder of all tools: language models. */
  readonly tools: StoreFolder;
  /** Folder of the acceptance of the terms of use. */
  readonly terms: StoreFolder;
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

/** A model that comes with Kinora. */
export interface ListedModel {
  readonly manifest: ModelManifest;
  /** Its `base`; null without one. */
  readonly base: ModelFolder | null;
  /** Material of tests: the library knows it, and no list shows it. */
  readonly hidden?: boolean;
}

/** Called with each change. */
export type SnapshotListener = (snapshot: LibrarySnapshot) => void;
