import type { ErrorCode, ErrorRecord } from '../../contract/errors';
import { databaseError, type KinoraDatabase } from '../database';
import { newPredictionId, type WaitingInput } from '../run-input';
import { loadSetting, saveSetting } from '../settings';

/** A request that waits for its turn; no prediction exists yet. */
export interface QueueEntry {
  /** The id that its prediction will have. */
  readonly id: string;
  /** Entries run in ascending order. Any number: an entry that is moved gets one between its neighbours. */
  readonly position: number;
  /** ISO 8601, UTC. */
  readonly addedAt: string;
  /** Whether the queue pauses when this one has run. */
  readonly pauseAfter: boolean;
  readonly input: WaitingInput;
  /** Small JPEG of the image; absent if it cannot be decoded. */
  readonly thumbnail?: Blob;
}

/** Why the queue is paused. */
export type QueuePause =
  /** A person wants it. */
  | { readonly reason: 'asked' }
  /** A run has ended with an error that the next one would meet too; its prediction has the details. */
  | { readonly reason: 'run'; readonly code: ErrorCode }
  /** The first entry could not be started. */
  | { readonly reason: 'entry'; readonly error: ErrorRecord };

/** Key of the setting that holds the {@link QueuePause}. */
const pauseKey = 'queue-pause';

/** The requests of this browser that wait for their turn. Every method may be called in any tab. */
export class RequestQueue {
  constructor(readonly database: KinoraDatabase) {}

  /** All entries in the order in which they run. */
  list(): Promise<QueueEntry[]> {
    return this.database.queue.orderBy('position').toArray();
  }

  /** The entries that may run, in their order; none while the queue is paused. */
  async runnable(): Promise<QueueEntry[]> {
    return (await this.pauseState()) ? [] : this.list();
  }

  /** Undefined where it does not wait any more. */
  get(id: string): Promise<QueueEntry | undefined> {
    return this.database.queue.get(id);
  }

  /**
   * Adds requests at the end: all of them, or none.
   *
   * @param thumbnails of their images, in the same order; absent or null where there is none
   * @throws KinoraError `STORAGE_FULL`
   */
  async add(inputs: readonly WaitingInput[], thumbnails: readonly (Blob | null)[]): Promise<void> {
    await this.#write(async () => {
      const last = await this.database.queue.orderBy('position').last();
      const first = (last?.position ?? 0) + 1;
      await this.database.queue.bulkAdd(
        inputs.map((input, index) => newEntry(input, first + index, thumbnails[index] ?? null)),
      );
    });
  }

  /**
   * Moves an entry.
   *
   * @param index where it will be, from 0; larger than the last one means the end
   */
  async move(id: string, index: number): Promise<void> {
    await this.#write(async () => {
      const others = (await this.list()).filter((entry) => entry.id !== id);
      await this.database.queue.update(id, { position: positionAt(others, index) });
    });
  }

  /** Adds a copy of an entry directly after it. */
  async duplicate(id: string): Promise<void> {
    await this.#write(async () => {
      const entries = await this.list();
      const index = entries.findIndex((entry) => entry.id === id);
      const entry = entries[index];
      if (!entry) return;
      const { input, thumbnail = null } = entry;
      await this.database.queue.add(newEntry(input, positionAt(entries, index + 1), thumbnail));
    });
  }

  /**
   * Replaces the request of an entry, which keeps its place.
   *
   * @returns false if it does not wait any more
   */
  async replace(id: string, input: WaitingInput, thumbnail: Blob | null): Promise<boolean> {
    return this.#write(async () => {
      const entry = await this.database.queue.get(id);
      if (!entry) return false;
      const { position, pauseAfter, addedAt } = entry;
      const shared = { id, position, pauseAfter, addedAt, input };
      await this.database.queue.put({ ...shared, ...(thumbnail && { thumbnail }) });
      return true;
    });
  }

  async setPauseAfter(id: string, pauseAfter: boolean): Promise<void> {
    await this.#write(() => this.database.queue.update(id, { pauseAfter }));
  }

  /** Removes entries. @returns those that were still there, for {@link restore} */
  async remove(ids: readonly string[]): Promise<readonly QueueEntry[]> {
    return this.#write(async () => {
      const entries = await this.database.queue.where('id').anyOf(ids).toArray();
      await this.database.queue.bulkDelete([...ids]);
      return entries;
    });
  }

  /** Brings removed entries back to their places. */
  async restore(entries: readonly QueueEntry[]): Promise<void> {
    await this.#write(() => this.database.queue.bulkPut([...entries]));
  }

  /** Whether the queue is paused, and why; null while it runs. */
  async pauseState(): Promise<QueuePause | null> {
    return ((await loadSetting(this.database, pauseKey)) as QueuePause | undefined) ?? null;
  }

  /** Pauses the queue: a run is not affected, but nothing starts after it. */
  async pause(why: QueuePause = { reason: 'asked' }): Promise<void> {
    await saveSetting(this.database, pauseKey, why);
  }

  /** Ends a pause. */
  async unpause(): Promise<void> {
    await this.#write(() => this.database.settings.delete(pauseKey));
  }

  async #write<T>(work: () => PromiseLike<T>): Promise<T> {
    const { queue, settings } = this.database;
    try {
      return await this.database.transaction('rw', [queue, settings], async () => work());
    } catch (thrown) {
      throw databaseError(thrown);
    }
  }
}

function newEntry(input: WaitingInput, position: number, thumbnail: Blob | null): QueueEntry {
  const addedAt = new Date().toISOString();
  const shared = { id: newPredictionId(), position, addedAt, pauseAfter: false, input };
  return { ...shared, ...(thumbnail && { thumbnail }) };
}

/** A position between the neighbours of an index, so that only the moved entry is written. */
function positionAt(others: readonly QueueEntry[], index: number): number {
  const after = others[index]?.position;
  const before = others[Math.min(index, others.length) - 1]?.position;
  if (before === undefined) return (after ?? 1) - 1;
  return after === undefined ? before + 1 : (before + after) / 2;
}
