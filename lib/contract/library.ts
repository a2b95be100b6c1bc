import type { ErrorRecord } from './errors';
import type { ComponentId, ModelManifest, Precision } from './manifest';

/** Where a part of a model stands. */
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

/** Why a download stands still: the user, no connection, or no room. */
export type PauseReason = 'user' | 'network' | 'storage' | 'interrupted';

/** One component of a model and its download. */
export interface PartState {
  readonly component: ComponentId;
  readonly status: PartStatus;
  /** Bytes of its source files that are converted and written. */
  readonly bytesDone: number;
  /** Bytes of its source files; null until the hub has said. */
  readonly bytesTotal: number | null;
  /** Bytes that it takes in the browser's storage so far. */
  readonly bytesStored: number;
  readonly pausedBy?: PauseReason;
  /** What the user should know: a file that changed on the hub and starts over, a retry in n seconds. */
  readonly notice?: string;
  /** Why it had to start over; its notice again once nothing newer is to be said. */
  readonly restartNotice?: string;
  readonly error?: ErrorRecord;
}

/** What the store's own manifest says of a component: written when it is complete. */
export interface StoredComponent {
  readonly component: ComponentId;
  /** Where it came from: `owner/name/path@revision`, or the name of a local file. */
  readonly sources: readonly {
    readonly name: string;
    readonly bytes: number;
    readonly sha256: string | null;
  }[];
  /** The source's most frequent element type, such as `Q8_0`. */
  readonly sourceType: string;
  /** How its linear layers are stored. */
  readonly precision: Precision;
  /** Tensor with the largest ‖stored − source‖ / ‖source‖; null where everything is exact. */
  readonly worst: { readonly tensor: string; readonly relativeError: number } | null;
  readonly bytesStored: number;
  /** ISO 8601. */
  readonly completedAt: string;
  /**
   * When its bytes were last checked, ISO 8601: at first as they arrived, each file against the SHA-256
   * that the hub announced; later by `verify`, which reads what is stored back and compares every byte
   * with its checksum. Files without an announced hash were only checked for their length and form.
   */
  readonly verifiedAt: string;
}

/** A model as the library knows it. */
export interface ModelEntry {
  readonly manifest: ModelManifest;
  /** `bundled` needs no download; `listed` comes with Kinora; `added` was added by the user. */
  readonly origin: 'bundled' | 'listed' | 'added';
  /** Whether it can run now. */
  readonly ready: boolean;
  /** The precision that was chosen for the download; null before. */
  readonly precision: Precision | null;
  readonly parts: readonly PartState[];
  readonly stored: readonly StoredComponent[];
  /** Whether another tab downloads, converts or checks it right now; its progress is shown here. */
  readonly elsewhere: boolean;
  /** Bytes per second over the last few seconds, of all parts; 0 while nothing runs. */
  readonly bytesPerSecond: number;
}

/** A LoRA of the library. Its name is usable as `loras[].path`. */
export interface LoraEntry {
  /** Unique, ends in `.safetensors`. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Where it came from: an address, or the name of a local file. */
  readonly source: string;
  /** Largest rank of its layers; 0 where it has none. */
  readonly rank: number;
  /** Base model as its metadata or its shapes tell: "Wan2.2-TI2V-5B"; "unknown" where they do not. */
  readonly base: string;
  readonly triggerWords: readonly string[];
  readonly addedAt: string;
}

export interface StorageReport {
  readonly usage: number;
  readonly quota: number;
  /** Whether there may be more room than the quota tells: some browsers keep that to themselves. */
  readonly atLeast?: boolean;
  /** Whether the browser promised not to evict it. */
  readonly persistent: boolean;
}

/** What a download will take, before it starts. */
export interface DownloadPlan {
  readonly parts: readonly {
    readonly component: ComponentId;
    readonly files: readonly { readonly name: string; readonly bytes: number }[];
    /** Bytes still to be fetched. */
    readonly bytesLeft: number;
    readonly bytesTotal: number;
  }[];
  /** Bytes to fetch. */
  readonly download: number;
  /** Bytes that will be written to the browser's storage, the converted form. */
  readonly store: number;
  readonly storage: StorageReport;
  /** Free bytes after the download; negative means there is too little room. */
  readonly left: number;
}

/** Everything that the library shows. One snapshot: a view needs nothing else. */
export interface LibrarySnapshot {
  /** Base address of the hub. */
  readonly hub: string;
  readonly models: readonly ModelEntry[];
  readonly loras: readonly LoraEntry[];
  /** Downloads of LoRAs that are under way, by name. */
  readonly loraDownloads: readonly {
    readonly name: string;
    readonly bytesDone: number;
    readonly bytesTotal: number | null;
  }[];
  readonly storage: StorageReport;
}

/** A model to add: a hub address (`owner/name`, `owner/name/path.gguf`, a link) or local files. */
export type ModelSource =
  | { readonly address: string; readonly revision?: string }
  | { readonly files: readonly LocalFile[] };

/** A picked or dropped file with its path inside the picked folder. */
export interface LocalFile {
  readonly path: string;
  readonly file: File;
}

/** The library worker's face, spoken over Comlink. Every rejection is a KinoraError. */
export interface LibraryApi {
  snapshot(): Promise<LibrarySnapshot>;
  /** Calls back with each change, other tabs' included, at most about four times a second. */
  subscribe(listener: (snapshot: LibrarySnapshot) => void): Promise<void>;
  /** @throws KinoraError `ADDRESS_INVALID` */
  setHub(base: string): Promise<void>;

  /** Looks at the source, recognises its layout and lists it. Nothing large is fetched. */
  addModel(source: ModelSource): Promise<ModelEntry>;
  /** Takes an added model off the list and deletes what is stored of it. */
  forgetModel(id: string): Promise<void>;

  planDownload(id: string, precision: Precision): Promise<DownloadPlan>;
  /**
   * Fetches and converts what is missing; goes on where it stopped. Resolves when the model is ready,
   * and also when it was paused or cancelled.
   */
  download(id: string, precision: Precision): Promise<void>;
  /** All parts, or one of them. */
  pause(id: string, component?: ComponentId): Promise<void>;
  resume(id: string, component?: ComponentId): Promise<void>;
  /** Ends the download and deletes what is not complete; ends a verification. */
  cancel(id: string, component?: ComponentId): Promise<void>;
  /** Takes local files for the parts they fit, instead of the hub. */
  importFiles(id: string, precision: Precision, files: readonly LocalFile[]): Promise<void>;
  /**
   * Compares every stored byte with its checksum; a damaged part becomes absent. Resolves also when it
   * was cancelled.
   */
  verify(id: string): Promise<void>;
  /** Deletes what is stored of a model. */
  deleteModel(id: string): Promise<void>;

  /** @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`, `ADDRESS_INVALID`, … */
  addLora(source: { readonly address: string } | { readonly file: File }): Promise<LoraEntry>;
  /** Also ends the download of one that is under way: its `addLora` rejects with `CANCELLED`. */
  deleteLora(name: string): Promise<void>;
}
