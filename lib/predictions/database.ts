import Dexie, { type EntityTable } from 'dexie';
import { KinoraError, toKinoraError } from '../contract/errors';
import type { Prediction } from '../contract/prediction';

/** One adapter file of a prediction; its scale is in `parameters.loras` at the same index. */
export interface SourceLora {
  readonly name: string;
  readonly file: Blob;
}

/** The files that a prediction started from: what "run again" needs beside its parameters. */
export interface Source {
  readonly predictionId: string;
  readonly image: Blob;
  readonly imageName: string;
  readonly loras: readonly SourceLora[];
  /** Small JPEG of the image; absent until it is drawn, or where the image cannot be read. */
  readonly thumbnail?: Blob;
}

/** A deleted prediction that can still be brought back. */
export interface Removed {
  readonly id: string;
  readonly prediction: Prediction;
  readonly source: Source | null;
  /** Milliseconds since the epoch. */
  readonly removedAt: number;
}

/** The unfinished form: small values and large files are apart, so that typing copies no files. */
export interface Draft {
  readonly id: 'values' | 'files';
  readonly content: unknown;
}

/** The IndexedDB database of one browser profile. */
export class KinoraDatabase extends Dexie {
  declare predictions: EntityTable<Prediction, 'id'>;
  declare sources: EntityTable<Source, 'predictionId'>;
  declare trash: EntityTable<Removed, 'id'>;
  declare drafts: EntityTable<Draft, 'id'>;

  /** @param name another name keeps tests apart */
  constructor(name = 'kinora') {
    super(name);
    this.version(1).stores({
      predictions: 'id, createdAt, status',
      sources: 'predictionId',
      trash: 'id, removedAt',
      drafts: 'id',
    });
  }
}

/**
 * Turns what Dexie throws into a KinoraError. A full disk comes as Dexie's own error class, sometimes
 * as the cause of an aborted transaction.
 */
export function databaseError(thrown: unknown): KinoraError {
  if (thrown instanceof Dexie.DexieError) {
    for (let error: unknown = thrown; error instanceof Error; error = innerError(error)) {
      if (error.name === 'QuotaExceededError') return new KinoraError('STORAGE_FULL');
    }
  }
  return toKinoraError(thrown);
}

function innerError(error: Error): unknown {
  return 'inner' in error ? error.inner : undefined;
}
