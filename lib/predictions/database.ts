import Dexie, { type EntityTable } from 'dexie';
import { KinoraError, type Prediction, toKinoraError } from '../contract';
import type { SourceLora } from './loras';

/** The input files of a prediction, which "Run again" needs besides its parameters. */
export interface Source {
  readonly predictionId: string;
  readonly image: Blob;
  readonly imageName: string;
  /** The end image; its name is in the options of the prediction. */
  readonly lastImage?: Blob | undefined;
  readonly loras: readonly SourceLora[];
  /** The last latents of the video that it continues, or the video; absent where it goes on from the picture alone. */
  readonly before?: Blob | undefined;
  /** Small JPEG of the image; absent if it cannot be decoded. */
  readonly thumbnail?: Blob | undefined;
}

/** A deleted prediction that can still be restored. */
export interface Removed {
  readonly id: string;
  readonly prediction: Prediction;
  readonly source: Source | null;
  /** Milliseconds since the epoch. */
  readonly removedAt: number;
}

/** A part of the unfinished form. Files have a row of their own, so that typing does not copy them. */
export interface Draft {
  readonly id: 'values' | 'files' | 'replaced';
  readonly content: unknown;
}

/** A picture of a finished video: a small JPEG of one of its frames. */
export interface Poster {
  readonly predictionId: string;
  readonly picture: Blob;
}

/** A setting of this browser, or a list that it keeps, such as presets and past prompts. */
export interface Setting {
  readonly id: string;
  readonly content: unknown;
}

/** The IndexedDB database of one browser profile. */
export class KinoraDatabase extends Dexie {
  declare predictions: EntityTable<Prediction, 'id'>;
  declare sources: EntityTable<Source, 'predictionId'>;
  declare trash: EntityTable<Removed, 'id'>;
  declare drafts: EntityTable<Draft, 'id'>;
  declare posters: EntityTable<Poster, 'predictionId'>;
  declare settings: EntityTable<Setting, 'id'>;

  /** @param name tests use other names */
  constructor(name = 'kinora') {
    super(name);
    // What waited in the table `queue` of earlier builds is dropped with it.
    this.version(4).stores({
      predictions: 'id, createdAt, status',
      sources: 'predictionId',
      trash: 'id, removedAt',
      drafts: 'id',
      posters: 'predictionId',
      settings: 'id',
    });
  }
}

/**
 * Saves a part of the unfinished form.
 *
 * @param content any value that IndexedDB can store, files included
 * @throws KinoraError `STORAGE_FULL`
 */
export async function saveDraft(
  database: KinoraDatabase,
  id: Draft['id'],
  content: unknown,
): Promise<void> {
  try {
    await database.drafts.put({ id, content });
  } catch (thrown) {
    throw databaseError(thrown);
  }
}

/** The saved part, not validated; undefined if there is none. */
export async function loadDraft(database: KinoraDatabase, id: Draft['id']): Promise<unknown> {
  return (await database.drafts.get(id))?.content;
}

/**
 * Converts an error of Dexie. A full disk is reported as Dexie's own error class, sometimes as the cause
 * of an aborted transaction.
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
