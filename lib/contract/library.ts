import type { ErrorRecord } from './errors';
import type { Noise } from './lora-files';
import type { Licence, ModelManifest } from './manifest';
import type { ComponentId, Precision } from './manifest-parts';
import type { AdapterChoices } from './model-sources';
import { partOfTool } from './model-sources';
import type { ToolManifest } from './tools';

/** Status of one part of a model. */
export const partStatuses = [
  'absent',
  'waiting',
  'downloading',
  'paused',
  'verifying',
  'complete',
  'failed',
] as const;
export type PartStatus = (typeof partStatuses)[number];

/** Why a download is paused: by the user, no connection, no free storage, or a closed page. */
export type PauseReason = 'user' | 'network' | 'storage' | 'interrupted';

/** One component of a model and its download. */
export interface PartState {
  readonly component: ComponentId;
  readonly status: PartStatus;
  /** Bytes of its source files that were converted and stored. */
  readonly bytesDone: number;
  /** Size of its source files in bytes; null until the hub has reported it. */
  readonly bytesTotal: number | null;
  /** Bytes in the browser's storage so far. */
  readonly bytesStored: number;
  readonly pausedBy?: PauseReason;
  /** A message for the user, for example that a changed file starts over, or a retry in n seconds. */
  readonly notice?: string | undefined;
  /** Why it had to start over; shown as `notice` when there is no newer message. */
  readonly restartNotice?: string;
  readonly error?: ErrorRecord;
}

/** The stored manifest of a component, written when the component is complete. */
export interface StoredComponent {
  readonly component: ComponentId;
  /** Its origin: `owner/name/path@revision`, or the name of a local file. */
  readonly sources: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly sha256: string | null;
  }[];
  /** The source's most frequent element type, such as `Q8_0`. */
  readonly sourceType: string;
  /** Precision of its stored linear layers. */
  readonly precision: Precision;
  /** The tensor with the largest ‖stored − source‖ / ‖source‖; null if all are exact. */
  readonly worst: { readonly tensor: string; readonly relativeError: number } | null;
  readonly bytesStored: number;
  /** ISO 8601. */
  readonly completedAt: string;
  /**
   * When its bytes were last checked, ISO 8601. A download checks each file against the SHA-256 of the
   * hub; `verify` reads the stored files and compares their checksums. For files without a hash on the
   * hub, a download checks only length and format.
   */
  readonly verifiedAt: string;
}

/** How far the work on a model is: a download or a check, of this tab or another one of this browser. */
export interface WorkProgress {
  readonly bytesDone: number;
  /** Null where it is not known yet. */
  readonly bytesTotal: number | null;
}

/**
 * Sums up the parts of a model. An absent part was not chosen, or was cancelled: it is not counted. A part that
 * failed before its size was known is not counted either.
 */
export function progressOf(parts: readonly PartState[]): WorkProgress {
  const counted = parts.filter(
    ({ status, bytesTotal }) => status !== 'absent' && (status !== 'failed' || bytesTotal !== null),
  );
  return sumProgress(counted);
}

/** The total is not known while one of them is not. */
export function sumProgress(works: readonly WorkProgress[]): WorkProgress {
  return works.reduce<WorkProgress>(
    (sum, { bytesDone, bytesTotal }) => ({
      bytesDone: sum.bytesDone + bytesDone,
      bytesTotal:
        sum.bytesTotal === null || bytesTotal === null ? null : sum.bytesTotal + bytesTotal,
    }),
    { bytesDone: 0, bytesTotal: 0 },
  );
}

/** A model or a tool as the library knows it. */
export interface LibraryEntry<M extends ToolManifest = ToolManifest> {
  readonly manifest: M;
  /** `bundled` needs no download; `listed` is part of Kinora's list; `added` was added by the user. */
  readonly origin: 'bundled' | 'listed' | 'added';
  /** Material of tests, which no list shows. */
  readonly hidden?: true;
  /** Whether everything that it needs to run is stored. */
  readonly ready: boolean;
  /** The precision that was chosen for the download; null before a choice. */
  readonly precision: Precision | null;
  /** The adapters that were chosen for the download; absent before a choice. */
  readonly adapters?: AdapterChoices;
  readonly parts: readonly PartState[];
  readonly stored: readonly StoredComponent[];
  /** Stored parts that another installed model uses as well: they stay when this one is deleted. */
  readonly shared?: readonly ComponentId[];
  /**
   * What another tab downloads, converts, checks or deletes of it right now; null while none does. Only
   * that tab can pause or cancel: here every call that changes the model rejects with `MODEL_BUSY`.
   */
  readonly elsewhere: WorkProgress | null;
  /** Bytes per second over the last few seconds, of all parts; 0 while nothing runs. */
  readonly bytesPerSecond: number;
}

export type ModelEntry = LibraryEntry<ModelManifest>;
/** A language model for the prompt optimiser, or a network that finishes videos. */
export type ToolEntry = LibraryEntry;

/** Those for the prompt optimiser. */
export function languageModelsOf(tools: readonly ToolEntry[]): readonly ToolEntry[] {
  return tools.filter(({ manifest }) => partOfTool(manifest) === 'language_model');
}

/** Whether a model has a safety checker of its own. */
export function hasSafetyChecker({ stored }: Pick<ModelEntry, 'stored'>): boolean {
  return stored.some(({ component }) => component === 'safety_checker');
}

/** A LoRA of the library. Its name is valid as `loras[].path`. */
export interface LoraEntry {
  /** Unique; ends in `.safetensors`. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Its origin: an address, or the name of a local file. */
  readonly source: string;
  /** Largest rank of its layers; 0 if it has no low-rank layers. */
  readonly rank: number;
  /** Base model by its metadata or tensor shapes, such as "Wan2.2-TI2V-5B" or "14B (Wan2.1)", or "unknown". */
  readonly base: string;
  /** The transformer of Wan2.2-I2V-A14B that it is for; absent where it is for both. */
  readonly noise?: Noise | undefined;
  readonly triggerWords: readonly string[];
  /** Its licence by the hub, or "unknown". */
  readonly licence: Licence;
  readonly addedAt: string;
}

/** What the header of a LoRA says that fits a model. */
export interface LoraInspection extends Pick<LoraEntry, 'base' | 'noise' | 'triggerWords'> {
  /** How many of its tensors have no effect on the model. */
  readonly unused?: number;
}

/** Stored and allowed bytes of this origin. */
export interface StorageReport {
  readonly usage: number;
  readonly quota: number;
  /** True if the browser may grant more than `quota`: some browsers do not report the real limit. */
  readonly atLeast?: boolean;
  /** Whether the browser has promised not to evict the data. */
  readonly persistent: boolean;
}

/** Needs of a download, computed before it starts. */
export interface DownloadPlan {
  readonly parts: readonly {
    readonly component: ComponentId;
    readonly files: readonly { readonly name: string; readonly bytes: number }[];
    /** Bytes still to be fetched. */
    readonly bytesLeft: number;
    /** 0 where the hub does not have it. */
    readonly bytesTotal: number;
  }[];
  /** Bytes to fetch. */
  readonly download: number;
  /** Bytes to write to the browser's storage, after conversion. */
  readonly store: number;
  readonly storage: StorageReport;
  /** Free bytes after the download; negative means too little storage. */
  readonly left: number;
}

/** The complete state of the library, for views. */
export interface LibrarySnapshot {
  /** Base address of the hub. */
  readonly hub: string;
  /** Whether a token of the user's account is sent to this hub; the token itself stays in the worker. */
  readonly hasHubToken: boolean;
  readonly models: readonly ModelEntry[];
  readonly tools: readonly ToolEntry[];
  readonly loras: readonly LoraEntry[];
  /** Running downloads of LoRAs, by name. */
  readonly loraDownloads: readonly {
    readonly name: string;
    readonly bytesDone: number;
    readonly bytesTotal: number | null;
  }[];
  readonly storage: StorageReport;
  /** Bytes of all models, tools and LoRAs. Shared parts are counted once. */
  readonly bytesStored: number;
}

/** Video models and language models. */
export function entriesOf({ models, tools }: LibrarySnapshot): readonly LibraryEntry[] {
  return [...models, ...tools];
}

/** A model to add: a hub address (`owner/name`, `owner/name/path.gguf`, a link) or local files. */
export type ModelSource =
  | { readonly address: string; readonly revision?: string | undefined }
  | { readonly files: readonly LocalFile[] };

/** A picked or dropped file with its path inside the picked folder. */
export interface LocalFile {
  readonly path: string;
  readonly file: File;
}

/**
 * What the library worker offers over Comlink. Every rejection is a KinoraError. An `id` is that of a
 * model or of a tool.
 */
export interface LibraryApi {
  snapshot(): Promise<LibrarySnapshot>;
  /** Reports every change, also those by other tabs, at most about four times a second. */
  subscribe(listener: (snapshot: LibrarySnapshot) => void): Promise<void>;
  /** @throws KinoraError `ADDRESS_INVALID` */
  setHub(base: string): Promise<void>;
  /**
   * Sets the token of the user's account for the hub in use, or removes it with null. It is sent to this
   * hub only.
   *
   * @param keep false: it is forgotten when the worker ends; true when absent
   * @throws KinoraError `PARAMETER_INVALID`
   */
  setHubToken(token: string | null, keep?: boolean): Promise<void>;

  /** Reads the headers of the source, detects its file layout and adds it to the list. */
  addModel(source: ModelSource): Promise<ModelEntry>;
  /**
   * Reads the header of a GGUF file and adds it as a language model.
   *
   * @throws KinoraError `MODEL_WRONG_KIND` where it is no chat model, `ADDRESS_INVALID`, …
   */
  addTool(source: ModelSource): Promise<ToolEntry>;
  /** Removes an added model or tool from the list and deletes its stored files. */
  forgetModel(id: string): Promise<void>;

  /** @param adapters those chosen before, or the first, when absent @param without parts not to fetch */
  planDownload(
    id: string,
    precision: Precision,
    adapters?: AdapterChoices,
    without?: readonly ComponentId[],
  ): Promise<DownloadPlan>;
  /**
   * Downloads and converts the missing parts, continuing unfinished ones. Resolves when the model is
   * ready, and also when the download was paused or cancelled. A part that the hub does not have, or does not give, fails; the others are fetched all the same.
   *
   * @param adapters replace others that are stored, and are remembered; as in {@link planDownload}
   * @throws KinoraError the first failure
   */
  download(...args: Parameters<LibraryApi['planDownload']>): Promise<void>;
  /** All parts, or one of them. */
  pause(id: string, component?: ComponentId): Promise<void>;
  resume(id: string, component?: ComponentId): Promise<void>;
  /** Ends the download and deletes incomplete parts, or ends a verification. */
  cancel(id: string, component?: ComponentId): Promise<void>;
  /** Converts local files into the parts that they contain, instead of files of the hub. */
  importFiles(id: string, precision: Precision, files: readonly LocalFile[]): Promise<void>;
  /**
   * Compares all stored files with their checksums; a damaged part becomes absent. Resolves also when
   * it was cancelled.
   */
  verify(id: string): Promise<void>;
  /** Deletes the stored files of a model. */
  deleteModel(id: string): Promise<void>;

  /** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `ADDRESS_INVALID`, … */
  addLora(source: { readonly address: string } | { readonly file: File }): Promise<LoraEntry>;
  /**
   * Checks by its header whether a LoRA fits a model.
   *
   * @param model id of the model
   * @returns null where nothing of the model is here to compare it with
   * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `FILE_UNREADABLE`, `MODEL_UNKNOWN`
   */
  inspectLora(model: string, file: File): Promise<LoraInspection | null>;
  /**
   * The models of the list that a LoRA fits, installed or not, by their ids.
   *
   * @throws KinoraError `LORA_INVALID` where it cannot be read
   */
  modelsOfLora(file: File): Promise<readonly string[]>;
  /**
   * Deletes it, with the other file of a pair. Ends a running download of it too, whose `addLora` then rejects with
   * `CANCELLED`.
   */
  deleteLora(name: string): Promise<void>;
}
