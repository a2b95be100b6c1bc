import { type ErrorCode, isResumable, toKinoraError } from '../../contract/errors';
import type { StartedRun } from '../current-run';
import { entryLock, queueLock } from '../locks';
import type { SourceLora } from '../loras';
import { createPrediction, type WaitingInput, type WaitingLora } from '../run-input';
import type { Runner } from '../runner';
import { makeThumbnail } from '../thumbnail';
import type { QueueEntry, RequestQueue } from './queue';

/**
 * Runs what waits in the queue, one after the other: in one tab at a time, the one that holds the queue's Web
 * Lock. It holds the lock until nothing more can start; when it is closed, another tab goes on.
 * {@link subscribe} and {@link isActive} fit React's `useSyncExternalStore`.
 */
export class QueueRunner {
  #active = false;
  /** Whether this tab has the lock, or waits for it. */
  #requested = false;
  /** Whether something was added or resumed since the last look at the queue. */
  #changed = false;
  /** Entries whose turn has come while they are edited: they are held, and run when that is over. */
  readonly #held = new Set<string>();
  readonly #listeners = new Set<() => void>();
  readonly #stopListeners = new Set<(id: string) => void>();

  constructor(
    readonly queue: RequestQueue,
    readonly runner: Runner,
    /** Opens an adapter of the library. */
    readonly openLora: (lora: WaitingLora) => Promise<SourceLora>,
  ) {}

  /** Whether this tab runs the queue; true also between two runs. */
  readonly isActive = (): boolean => this.#active;

  /** Whether nothing else can run than what is being edited, in this tab or another one. */
  readonly isHeld = (): boolean => !this.#active && this.#held.size > 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Calls `listener` with the id of the last prediction when this tab has run the queue.
   *
   * @returns a function that ends this
   */
  onStopped(listener: (id: string) => void): () => void {
    this.#stopListeners.add(listener);
    return () => this.#stopListeners.delete(listener);
  }

  /**
   * Adds requests at the end. Where nothing waits and nothing of the queue runs, the first one starts at once,
   * in this tab.
   *
   * @param inputs at least one
   * @returns whether it starts at once
   * @throws KinoraError of {@link Runner.start} for what is wrong with a request or its image, `STORAGE_FULL`;
   *   then nothing was added
   */
  async add(inputs: readonly WaitingInput[]): Promise<boolean> {
    const thumbnails = await this.#check(inputs);
    return this.#go(async (free) => {
      const empty = (await this.queue.list()).length === 0;
      // A pause ends with the entries that it was meant for.
      if (free && empty) await this.queue.unpause();
      await this.queue.add(inputs, thumbnails);
      return free && empty;
    });
  }

  /**
   * Replaces the request of an entry.
   *
   * @returns false if it does not wait any more
   * @throws KinoraError like {@link add}
   */
  async replace(id: string, input: WaitingInput): Promise<boolean> {
    const [thumbnail = null] = await this.#check([input]);
    return this.queue.replace(id, input, thumbnail);
  }

  /**
   * Holds an entry while a person edits it: it does not run meanwhile, and the next one does.
   *
   * @returns a function that ends this; null where its turn has come, or another tab edits it
   */
  hold(id: string): Promise<(() => void) | null> {
    return new Promise((resolve, reject) => {
      const request = navigator.locks.request(
        entryLock(id),
        { ifAvailable: true },
        async (lock) => {
          if (!lock || !(await this.queue.get(id))) return resolve(null);
          await new Promise<void>((release) => resolve(release));
        },
      );
      request.catch(reject);
    });
  }

  /** Ends a pause; what waits runs in this tab, unless another one is at it. */
  async unpause(): Promise<void> {
    await this.#go(() => this.queue.unpause());
  }

  /** Runs what waits, if anything does: at once, or when the tab that runs the queue is closed. */
  wake(): void {
    this.#changed = true;
    if (this.#requested) return;
    this.#requested = true;
    // `#run` does not reject; a request is denied only while the page is closed.
    navigator.locks.request(queueLock, () => this.#run()).catch(() => {});
  }

  /** Validates requests. @returns the thumbnails of their images; null where there is none */
  async #check(inputs: readonly WaitingInput[]): Promise<(Blob | null)[]> {
    for (const input of inputs) await createPrediction(input);
    const thumbnailOf = async (input: WaitingInput) => {
      const { image, options, parameters } = input;
      await this.runner.checkImages(input);
      return makeThumbnail(image, options.framing, parameters.size).catch(() => null);
    };
    // Variations have the same image.
    const thumbnails = new Map<Blob, Promise<Blob | null>>();
    return Promise.all(
      inputs.map((input) => {
        const thumbnail = thumbnails.get(input.image) ?? thumbnailOf(input);
        thumbnails.set(input.image, thumbnail);
        return thumbnail;
      }),
    );
  }

  /**
   * Changes the queue, then runs it. If the lock is free, it is acquired before the change: other tabs learn of
   * the change, but the tab in which a person has asked for a video is the one that makes it.
   */
  #go<T>(change: (free: boolean) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const options = { ifAvailable: true };
      const request = navigator.locks.request(queueLock, options, async (lock) => {
        this.#requested ||= lock !== null;
        const changed = change(lock !== null);
        changed.then(resolve, reject);
        // Reported above, by the promise.
        await changed.catch(() => {});
        if (lock) await this.#run();
        else this.wake();
      });
      request.catch(reject);
    });
  }

  /** Runs entries until none can start. The caller holds the lock. */
  async #run(): Promise<void> {
    let last: string | null = null;
    this.#setActive(true);
    try {
      for (;;) {
        this.#changed = false;
        await this.#idle();
        const ran = await this.#runNext();
        if (ran) last = ran.id ?? last;
        else if (!this.#changed) break;
      }
    } catch {
      // The database cannot be read: the next change tries again.
    } finally {
      this.#requested = false;
      this.#setActive(false);
      if (last !== null) for (const listener of this.#stopListeners) listener(last);
    }
  }

  /**
   * Runs the first entry that nobody edits.
   *
   * @returns the id of the prediction, which is null if it could not be started; null if there is no such entry
   */
  async #runNext(): Promise<{ readonly id: string | null } | null> {
    for (const { id } of await this.queue.runnable()) {
      const options = { ifAvailable: true };
      const begun = await navigator.locks.request(entryLock(id), options, async (lock) => {
        if (!lock) this.#follow(id);
        // It may have been changed or removed since.
        const entry = lock && (await this.queue.get(id));
        return entry && { entry, started: await this.#start(entry) };
      });
      if (!begun) continue;
      const { entry, started } = begun;
      if (!started) return { id: null };
      if (entry.pauseAfter) await this.queue.pause();
      const { status, ...row } = await started.ended;
      if (status !== 'completed' && 'error' in row) await this.#pauseAfter(row.error.code);
      return { id };
    }
    return null;
  }

  /** Goes on when a held entry is edited no more. */
  #follow(id: string): void {
    if (this.#held.has(id)) return;
    this.#held.add(id);
    navigator.locks
      .request(entryLock(id), { mode: 'shared' }, () => {})
      .finally(() => {
        this.#held.delete(id);
        this.#tell();
        this.wake();
      })
      .catch(() => {}); // Without a lock the entry is looked at again with the next change.
  }

  /** @returns null if it could not be started */
  async #start({ id, input }: QueueEntry): Promise<StartedRun | null> {
    try {
      const loras = await Promise.all(input.loras.map((lora) => this.#open(lora)));
      return await this.runner.start({ ...input, loras }, undefined, id);
    } catch (thrown) {
      // A person was quicker with another run of this tab: this one waits until it ends.
      if (this.runner.getSnapshot().status !== 'idle') return null;
      await this.queue.pause({ reason: 'entry', error: toKinoraError(thrown).toRecord() });
      return null;
    }
  }

  async #open({ name, file }: WaitingLora): Promise<SourceLora> {
    return file ? { name, file } : this.openLora({ name, file });
  }

  /**
   * Pauses the queue after a failure that would hit the next run as well: of the device, of the storage or of the
   * model's files. A fault of one request does not concern the next one.
   */
  async #pauseAfter(code: ErrorCode): Promise<void> {
    if (isResumable(code) && (await this.queue.list()).length > 0) {
      await this.queue.pause({ reason: 'run', code });
    }
  }

  /** Resolves when this tab has no run. */
  #idle(): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (this.runner.getSnapshot().status !== 'idle') return;
        unsubscribe();
        resolve();
      };
      const unsubscribe = this.runner.subscribe(check);
      check();
    });
  }

  #setActive(active: boolean): void {
    this.#active = active;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
