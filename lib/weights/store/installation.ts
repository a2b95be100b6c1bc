import type { ComponentId, Precision } from '../../contract';
import type { LocatedTensor } from '../formats/located';
import type { ByteSource } from '../formats/source';
import type { KeptFile, StoreFolder } from './folder';
import type { Checksum, SourceHash } from './hashes';
import type { Journal } from './journal';
import type { ComponentRecipe, Layout } from './layout';
import type { Plan } from './units';

/** How far an installation is. */
export interface InstallProgress {
  /** Bytes of the sources that are converted and would survive a crash. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Bytes that are written to the packs. */
  readonly bytesStored: number;
}

/** Which component is installed, from which sources, and where. */
export interface InstallOptions {
  /** The component's folder in the store. */
  readonly folder: StoreFolder;
  readonly component: ComponentId;
  /** For the manifest: the precision that the recipe was made for. */
  readonly precision: Precision;
  readonly recipe: ComponentRecipe;
  /** Its files, in the order of the shards; see `keepStart`. */
  readonly sources: readonly ByteSource[];
  /** By the source names of the recipe; each `file` is one of `sources`. */
  readonly tensors: ReadonlyMap<string, LocatedTensor>;
  /** Kept and verified with its weights. */
  readonly files?: readonly KeptFile[];
  readonly signal: AbortSignal;
  /** Called once at the beginning, and whenever more is safe. */
  readonly onProgress?: (progress: InstallProgress) => void;
  /** Called when what was there does not fit any more and it starts over. */
  readonly onRestart?: (reason: string) => void;
  /** The hash in another thread, by Comlink; in this one when absent. See `sourceHashService`. */
  readonly hash?: SourceHash;
  /** Source bytes per unit; for tests. */
  readonly limit?: number;
  /** Units that are made safe together at most; for tests. */
  readonly unitsPerCommit?: number;
  /** Milliseconds; for tests. */
  readonly now?: () => number;
}

/** An installation that is under way in this tab. */
export interface Installation {
  readonly options: InstallOptions;
  readonly plan: Plan;
  readonly layout: Layout;
  /** Fingerprint of the whole. */
  readonly print: string;
  readonly journal: Journal;
  readonly hash: SourceHash;
  readonly checksum: Checksum;
}
