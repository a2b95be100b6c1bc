import { KinoraError } from '../contract/errors';
import type { Prediction } from '../contract/prediction';
import { databaseError, KinoraDatabase, type Source } from './database';
import { advancePrediction, isAtRest, type PredictionEvent } from './prediction-state';
import { removeRun } from './run-files';
import { removeVideo } from './videos';

/** How long a deleted prediction can be restored, in milliseconds. */
const undoMs = 60_000;

/** The predictions of this browser. Only this class writes their rows. */
export class PredictionStore {
  constructor(readonly database = new KinoraDatabase()) {}

  /**
   * Adds a prediction and its input files in one transaction, and removes the entry of the queue that it
   * comes from: the one with its id.
   *
   * @throws KinoraError `STORAGE_FULL`
   */
  async create(prediction: Prediction, source: Omit<Source, 'predictionId'>): Promise<void> {
    const { predictions, sources, queue } = this.database;
    await this.#write(async () => {
      await predictions.add(prediction);
      await sources.add({ ...source, predictionId: prediction.id });
      await queue.delete(prediction.id);
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
    return this.#write(async () => {
      const before = await predictions.get(id);
      if (!before) throw new KinoraError('INTERNAL', `There is no prediction ${id}.`);
      const after = advancePrediction(before, event);
      if (after !== before) await predictions.put(after);
      return after;
    });
  }

  get(id: string): Promise<Prediction | undefined> {
    return this.database.predictions.get(id);
  }

  /** All predictions, newest first. */
  async list(): Promise<Prediction[]> {
    return this.database.predictions.orderBy('createdAt').reverse().toArray();
  }

  /** Predictions that a tab works on, or has worked on until it was closed. */
  unfinished(): Promise<Prediction[]> {
    return this.database.predictions.where('status').anyOf('created', 'processing').toArray();
  }

  /** The image and adapters of a prediction. */
  source(id: string): Promise<Source | undefined> {
    return this.database.sources.get(id);
  }

  /** Saves a small picture of the input image. */
  async setThumbnail(id: string, thumbnail: Blob): Promise<void> {
    await this.#write(() => this.database.sources.update(id, { thumbnail }));
  }

  /**
   * Moves a prediction to the trash. {@link restore} brings it back, {@link purge} deletes its files.
   *
   * @returns false if there is no such prediction, or if a run works on it
   */
  async remove(id: string): Promise<boolean> {
    const { predictions, sources, trash } = this.database;
    return this.#write(async () => {
      const prediction = await predictions.get(id);
      if (!prediction || !isAtRest(prediction)) return false;
      const source = (await sources.get(id)) ?? null;
      await trash.put({ id, prediction, source, removedAt: Date.now() });
      await predictions.delete(id);
      await sources.delete(id);
      return true;
    });
  }

  /** Restores a deleted prediction; returns false if it was purged. */
  async restore(id: string): Promise<boolean> {
    const { predictions, sources, trash } = this.database;
    return this.#write(async () => {
      const removed = await trash.get(id);
      if (!removed) return false;
      await predictions.put(removed.prediction);
      if (removed.source) await sources.put(removed.source);
      await trash.delete(id);
      return true;
    });
  }

  /** Empties the trash of predictions that were deleted more than `olderThanMs` ago. */
  async purge(olderThanMs = undoMs): Promise<void> {
    const { trash } = this.database;
    const limit = Date.now() - olderThanMs;
    const removed = await trash.where('removedAt').belowOrEqual(limit).toArray();
    for (const { id, prediction } of removed) {
      // The row is deleted first: `sweep` finds files without a row, but a row must have its files.
      const count = await trash.where('id').equals(id).delete();
      if (count === 0) continue; // It was restored, or purged by another tab, in the meantime.
      if (prediction.status === 'completed') await removeVideo(prediction.result.videoFile);
      await removeRun(id);
    }
  }

  /** A prediction, also if it is in the trash. */
  async getAnywhere(id: string): Promise<Prediction | undefined> {
    const { predictions, trash } = this.database;
    return (await predictions.get(id)) ?? (await trash.get(id))?.prediction;
  }

  /** Deletes a row immediately, not through the trash. */
  async deleteRow(id: string): Promise<void> {
    await this.#write(async () => {
      await this.database.predictions.delete(id);
      await this.database.sources.delete(id);
    });
  }

  async #write<T>(work: () => PromiseLike<T>): Promise<T> {
    const { predictions, sources, trash, queue } = this.database;
    try {
      const tables = [predictions, sources, trash, queue];
      return await this.database.transaction('rw', tables, async () => work());
    } catch (thrown) {
      throw databaseError(thrown);
    }
  }
}
