import { KinoraError } from '../contract/errors';
import type { Prediction } from '../contract/prediction';
import { databaseError, KinoraDatabase, type Source } from './database';
import { advance, isTerminal, type PredictionEvent } from './machine';
import { removeVideo } from './videos';

/** How long a deleted prediction can be brought back, in milliseconds. */
export const undoMs = 60_000;

/** The predictions of this browser: the only place that writes their rows. */
export class PredictionStore {
  constructor(readonly database = new KinoraDatabase()) {}

  /**
   * Adds a prediction and the files it starts from, both or neither.
   *
   * @throws KinoraError `STORAGE_FULL`
   */
  async create(prediction: Prediction, source: Omit<Source, 'predictionId'>): Promise<void> {
    const { predictions, sources } = this.database;
    await this.#write(async () => {
      await predictions.add(prediction);
      await sources.add({ ...source, predictionId: prediction.id });
    });
  }

  /**
   * Lets one event happen to a prediction and returns the row as it is afterwards.
   *
   * @throws KinoraError `INTERNAL` when there is no such prediction, `STORAGE_FULL`
   */
  async dispatch(id: string, event: PredictionEvent): Promise<Prediction> {
    const { predictions } = this.database;
    return this.#write(async () => {
      const before = await predictions.get(id);
      if (!before) throw new KinoraError('INTERNAL', `There is no prediction ${id}.`);
      const after = advance(before, event);
      if (after !== before) await predictions.put(after);
      return after;
    });
  }

  get(id: string): Promise<Prediction | undefined> {
    return this.database.predictions.get(id);
  }

  /** All predictions, newest first. */
  list(): Promise<Prediction[]> {
    return this.database.predictions.orderBy('createdAt').reverse().toArray();
  }

  /** Predictions that have not ended. */
  unfinished(): Promise<Prediction[]> {
    return this.database.predictions.where('status').anyOf('created', 'processing').toArray();
  }

  /** The image and adapters that a prediction started from. */
  source(id: string): Promise<Source | undefined> {
    return this.database.sources.get(id);
  }

  /** Keeps a small picture for lists. */
  async setThumbnail(id: string, thumbnail: Blob): Promise<void> {
    await this.#write(() => this.database.sources.update(id, { thumbnail }));
  }

  /**
   * Deletes a prediction with its image, adapters and video. For {@link undoMs} it can be brought
   * back with {@link restore}; its bytes go with {@link purge}.
   *
   * @returns false when there is no such prediction, or when it has not ended
   */
  async remove(id: string): Promise<boolean> {
    const { predictions, sources, trash } = this.database;
    return this.#write(async () => {
      const prediction = await predictions.get(id);
      if (!prediction || !isTerminal(prediction)) return false;
      const source = (await sources.get(id)) ?? null;
      await trash.put({ id, prediction, source, removedAt: Date.now() });
      await predictions.delete(id);
      await sources.delete(id);
      return true;
    });
  }

  /** Brings a deleted prediction back; false when it is gone for good. */
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

  /** Frees the bytes of what was deleted more than `olderThanMs` ago. */
  async purge(olderThanMs = undoMs): Promise<void> {
    const { trash } = this.database;
    const limit = Date.now() - olderThanMs;
    const removed = await trash.where('removedAt').belowOrEqual(limit).toArray();
    for (const { id, prediction } of removed) {
      // The row goes first: a video without a row is swept later, a row without a video is a lie.
      const count = await trash.where('id').equals(id).delete();
      if (count === 0) continue; // restored, or purged by another tab, in the meantime
      if (prediction.status === 'completed') await removeVideo(prediction.result.videoFile);
    }
  }

  /** Name of the video that a row points to, be it shown or deleted but not yet purged. */
  async videoOf(id: string): Promise<string | null> {
    const { predictions, trash } = this.database;
    const row = (await predictions.get(id)) ?? (await trash.get(id))?.prediction;
    return row?.status === 'completed' ? row.result.videoFile : null;
  }

  /** Drops rows at once, without a way back. */
  async forget(id: string): Promise<void> {
    await this.#write(async () => {
      await this.database.predictions.delete(id);
      await this.database.sources.delete(id);
    });
  }

  async #write<T>(work: () => PromiseLike<T>): Promise<T> {
    const { predictions, sources, trash } = this.database;
    try {
      return await this.database.transaction('rw', [predictions, sources, trash], async () =>
        work(),
      );
    } catch (thrown) {
      throw databaseError(thrown);
    }
  }
}
