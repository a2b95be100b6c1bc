import Dexie, { RangeSet } from 'dexie';
import { type Created, KinoraError, type Prediction, toKinoraError } from '../contract';
import { databaseError, KinoraDatabase, type Source } from './database';
import { predictionLock } from './locks';
import type { SourceLora } from './loras';
import { advancePrediction, type PredictionEvent, starting } from './prediction-state';
import { removeRun } from './run-files';
import type { SourceFiles } from './run-input';
import { removeVideo } from './videos';

/** How long a deleted prediction can be restored at least, in milliseconds. */
const undoMs = 60_000;

/** How often it is tried to write what could not be written, in milliseconds. */
const retryMs = 5_000;

/** A request that waits, with its files. */
export interface Waiting {
  readonly prediction: Created;
  readonly source: SourceFiles;
}

/** The predictions of this browser. Only this class writes their rows. */
export class PredictionStore {
  /** Events of predictions that are not in their rows yet, by id. */
  readonly #unwritten = new Map<string, readonly PredictionEvent[]>();

  constructor(readonly database = new KinoraDatabase()) {}

  /**
   * Adds a prediction and its input files in one transaction.
   *
   * @param source null where the image is not stored any more
   * @throws KinoraError `STORAGE_FULL`
   */
  async create(prediction: Prediction, source: SourceFiles | null): Promise<void> {
    const { predictions, sources } = this.database;
    await this.#write(async () => {
      await predictions.add(prediction);
      if (source) await sources.add({ ...source, predictionId: prediction.id });
    });
  }

  /**
   * Adds requests behind those that wait: all of them, or none.
   *
   * @returns whether nothing else waits, and no run is under way
   * @throws KinoraError `STORAGE_FULL`
   */
  async enqueue(requests: readonly Waiting[]): Promise<boolean> {
    return this.#write(async () => {
      const last = (await this.waiting()).at(-1);
      const position = (last?.prediction.position ?? 0) + 1;
      for (const [index, { prediction, source }] of requests.entries()) {
        await this.create({ ...prediction, position: position + index }, source);
      }
      return !last && (await this.working()).length === 0;
    });
  }

  /**
   * Replaces a request that waits; it keeps its place.
   *
   * @returns false if it does not wait any more
   * @throws KinoraError `STORAGE_FULL`
   */
  async replace(id: string, { prediction, source }: Waiting): Promise<boolean> {
    const { predictions, sources } = this.database;
    return this.#write(async () => {
      const before = await this.get(id);
      if (before?.status !== 'created') return false;
      const { position, createdAt, pauseAfter } = before;
      const kept = { id, position, createdAt, ...(pauseAfter && { pauseAfter }) };
      await predictions.put({ ...prediction, ...kept });
      await sources.put({ ...source, predictionId: id });
      return true;
    });
  }

  /**
   * Begins with a request that waits, unless a run is under way in this browser: only one tab can.
   *
   * @param loras its adapters, with their files
   * @returns the row; null where its turn has not come, or it does not wait any more
   * @throws KinoraError `STORAGE_FULL`
   */
  async begin(id: string, loras: readonly SourceLora[]): Promise<Prediction | null> {
    const { predictions, sources } = this.database;
    return this.#write(async () => {
      const row = await this.get(id);
      if (row?.status !== 'created' || (await this.working()).length > 0) return null;
      const started = advancePrediction(row, starting(row));
      await predictions.put(started);
      if (loras.length > 0) await sources.update(id, { loras: [...loras] });
      return started;
    });
  }

  /**
   * Applies an event to a prediction.
   *
   * @returns the row after the event
   * @throws KinoraError `INTERNAL` if there is no such prediction, `STORAGE_FULL`
   */
  async dispatch(id: string, event: PredictionEvent): Promise<Prediction> {
    const { predictions } = this.database;
    const row = await this.#write(async () => {
      const stored = await predictions.get(id);
      if (!stored) throw new KinoraError('INTERNAL', `There is no prediction ${id}.`);
      const after = advancePrediction(this.#latest(stored), event);
      if (after !== stored) await predictions.put(after);
      return after;
    });
    this.#unwritten.delete(id);
    return row;
  }

  /**
   * Like {@link dispatch}, for what a run must not lose: where the disk is full, the event applies for this object
   * at once, and the row is written as soon as that is possible.
   *
   * @throws KinoraError `INTERNAL` if there is no such prediction
   */
  async note(id: string, event: PredictionEvent): Promise<Prediction> {
    try {
      return await this.dispatch(id, event);
    } catch (thrown) {
      const row = isFull(thrown) && (await this.database.predictions.get(id));
      if (!row) throw thrown;
      const events = this.#unwritten.get(id) ?? [];
      this.#unwritten.set(id, [...events, event]);
      if (events.length === 0) this.#retryLater(id);
      // Queries that follow the database run again, as after a write.
      Dexie.on.storagemutated.fire({ all: new RangeSet(-Infinity, [[]]) });
      return this.#latest(row);
    }
  }

  async get(id: string): Promise<Prediction | undefined> {
    const row = await this.database.predictions.get(id);
    return row && this.#latest(row);
  }

  /** All predictions, newest first. */
  async list(): Promise<Prediction[]> {
    const rows = await this.database.predictions.orderBy('createdAt').reverse().toArray();
    return rows.map((row) => this.#latest(row));
  }

  /** Predictions that a tab works on, or has worked on until it was closed. */
  async working(): Promise<Prediction[]> {
    const rows = await this.database.predictions.where({ status: 'processing' }).toArray();
    return rows.map((row) => this.#latest(row)).filter(({ status }) => status === 'processing');
  }

  /** The requests that wait, in the order in which they run. */
  async waiting(): Promise<Waiting[]> {
    const { predictions, sources } = this.database;
    const rows = await predictions.where({ status: 'created' }).toArray();
    const files = await sources.bulkGet(rows.map(({ id }) => id));
    return rows
      .flatMap((prediction, index) => {
        const source = files[index];
        return prediction.status === 'created' && source ? [{ prediction, source }] : [];
      })
      .sort((a, b) => a.prediction.position - b.prediction.position);
  }

  /** The image and adapters of a prediction. */
  source(id: string): Promise<Source | undefined> {
    return this.database.sources.get(id);
  }

  /** The picture of a finished video, of one of its frames; undefined until it is made. */
  async poster(id: string): Promise<Blob | undefined> {
    return (await this.database.posters.get(id))?.picture;
  }

  /** Saves the picture of a finished video, unless the video was deleted in the meantime. */
  async setPoster(id: string, picture: Blob): Promise<void> {
    await this.#write(async () => {
      if (await this.getAnywhere(id))
        await this.database.posters.put({ predictionId: id, picture });
    });
  }

  /**
   * Moves predictions to the trash. {@link restore} brings them back, {@link purge} deletes their files.
   *
   * @returns the ids of those that were moved: not those that do not exist, or that a run works on
   */
  async remove(ids: readonly string[]): Promise<string[]> {
    const { predictions, sources, trash } = this.database;
    return this.#write(async () => {
      const stored = (await predictions.bulkGet([...ids])).filter((row) => row !== undefined);
      const rows = stored
        .map((row) => this.#latest(row))
        .filter(({ status }) => status !== 'processing');
      const moved = rows.map(({ id }) => id);
      const files = await sources.bulkGet(moved);
      const removedAt = Date.now();
      await trash.bulkPut(
        rows.map((prediction, index) => {
          return { id: prediction.id, prediction, source: files[index] ?? null, removedAt };
        }),
      );
      await predictions.bulkDelete(moved);
      await sources.bulkDelete(moved);
      return moved;
    });
  }

  /** Restores deleted predictions. @returns the ids of those that were not purged yet */
  async restore(ids: readonly string[]): Promise<string[]> {
    const { predictions, sources, trash } = this.database;
    return this.#write(async () => {
      const removed = (await trash.bulkGet([...ids])).filter((one) => one !== undefined);
      const restored = removed.map(({ id }) => id);
      await predictions.bulkPut(removed.map(({ prediction }) => prediction));
      await sources.bulkPut(removed.map(({ source }) => source).filter((one) => one !== null));
      await trash.bulkDelete(restored);
      return restored;
    });
  }

  /** Deletes predictions in the trash for good: these, or all that were deleted more than a minute ago. */
  async purge(ids?: readonly string[]): Promise<void> {
    const { trash } = this.database;
    const removed = ids
      ? (await trash.bulkGet([...ids])).filter((one) => one !== undefined)
      : await trash
          .where('removedAt')
          .belowOrEqual(Date.now() - undoMs)
          .toArray();
    for (const { id, prediction } of removed) {
      // The row is deleted first: `sweep` finds files without a row, but a row must have its files.
      const count = await trash.where('id').equals(id).delete();
      if (count === 0) continue; // It was restored, or purged by another tab, in the meantime.
      await this.database.posters.delete(id);
      if (prediction.status === 'completed') await removeVideo(prediction.result.videoFile);
      await removeRun(id);
    }
  }

  /** A prediction, also if it is in the trash. */
  async getAnywhere(id: string): Promise<Prediction | undefined> {
    return (await this.get(id)) ?? (await this.database.trash.get(id))?.prediction;
  }

  /** Deletes a row immediately, not through the trash. */
  async deleteRow(id: string): Promise<void> {
    await this.#write(async () => {
      await this.database.predictions.delete(id);
      await this.database.sources.delete(id);
      await this.database.posters.delete(id);
    });
  }

  #latest(stored: Prediction): Prediction {
    return (this.#unwritten.get(stored.id) ?? []).reduce(advancePrediction, stored);
  }

  #retryLater(id: string): void {
    setTimeout(() => void this.#retry(id), retryMs);
  }

  /**
   * Writes what is not in a row yet, when no tab works on it, unless this tab has written it since. Only the
   * end of its row gives it up: a full disk and a lost connection to the database may pass.
   */
  async #retry(id: string): Promise<void> {
    try {
      await navigator.locks.request(predictionLock(id), async () => {
        const last = this.#unwritten.get(id)?.at(-1);
        if (!last) return;
        // A repeated event changes nothing, but writes the row.
        if (await this.database.predictions.get(id)) await this.dispatch(id, last);
        else this.#unwritten.delete(id);
      });
    } catch {
      // The database is blocked or full.
      this.#retryLater(id);
    }
  }

  async #write<T>(work: () => PromiseLike<T>): Promise<T> {
    const { predictions, sources, trash, posters } = this.database;
    const tables = [predictions, sources, trash, posters];
    try {
      return await this.database.transaction('rw', tables, async () => work());
    } catch (thrown) {
      throw databaseError(thrown);
    }
  }
}

function isFull(thrown: unknown): boolean {
  return toKinoraError(thrown).code === 'STORAGE_FULL';
}
