import {
  type ErrorCode,
  type ErrorRecord,
  isResumable,
  Observable,
  type Prediction,
  toKinoraError,
} from '../contract';
import type { StartedRun } from './current-run';
import { predictionLock } from './locks';
import { isCancelled } from './prediction-state';
import { newPredictionId, type RunInput } from './run-input';
import type { Runner } from './runner';
import { loadSetting, saveSetting } from './settings';
import type { Waiting } from './store';

/** Why the queue is paused. */
export type QueuePause =
  /** A person wants it. */
  | { readonly reason: 'asked' }
  /** A run has ended with an error that the next one would meet too; its prediction has the details. */
  | { readonly reason: 'run'; readonly code: ErrorCode }
  /** The first request could not be started. */
  | { readonly reason: 'entry'; readonly error: ErrorRecord };

/** Key of the setting that holds the {@link QueuePause}. */
const pauseKey = 'queue-pause';

/** How long what can run is left to the tab that has just ended a run, in milliseconds. */
const takeoverMs = 1000;

/** State of the queue of one tab. */
export interface QueueState {
  /** Whether this tab runs the queue; true also between two runs. */
  readonly active: boolean;
  /** Whether nothing else can run than what is being edited, in this tab or another one. */
  readonly held: boolean;
}

/**
 * The requests of this browser that wait for their turn, and what runs them, one after the other: every tab may, and
 * the database decides which one does.
 */
export class Queue extends Observable<QueueState> {
  /** Whether something may have changed since the last look at what waits. */
  #changed = false;
  /** Requests whose turn has come while they are edited: they run when that is over. */
  readonly #held = new Set<string>();
  readonly #stopListeners = new Set<(id: string | null) => void>();

  constructor(readonly runner: Runner) {
    super({ active: false, held: false });
  }

  get #store() {
    return this.runner.store;
  }

  /**
   * Calls `listener` when this tab has run the queue, with the id of the last prediction that was not cancelled; null
   * where all were.
   *
   * @returns a function that ends this
   */
  onStopped(listener: (id: string | null) => void): () => void {
    this.#stopListeners.add(listener);
    return () => this.#stopListeners.delete(listener);
  }

  /**
   * Adds requests at the end, and runs them in this tab where no other one does.
   *
   * @param inputs at least one
   * @returns whether the first one starts at once
   * @throws KinoraError of {@link Runner.prepare} for what is wrong with a request, `STORAGE_FULL`; then nothing was
   *   added
   */
  async add(inputs: readonly RunInput[]): Promise<boolean> {
    const pictures = new Map();
    const requests = await Promise.all(inputs.map((each) => this.runner.prepare(each, pictures)));
    const isFirst = await this.#store.enqueue(requests);
    // A pause ends with the requests that it was meant for.
    if (isFirst) await this.#setPause(null);
    this.wake();
    return isFirst;
  }

  /**
   * Replaces a request, which keeps its place.
   *
   * @returns false if it does not wait any more
   * @throws KinoraError like {@link add}
   */
  async replace(id: string, input: RunInput): Promise<boolean> {
    return this.#store.replace(id, await this.runner.prepare(input));
  }

  /**
   * Moves a request.
   *
   * @param index where it will be, from 0; larger than the last one means the end
   */
  async move(id: string, index: number): Promise<void> {
    const waiting = await this.#store.waiting();
    const others = waiting.filter(({ prediction }) => prediction.id !== id);
    if (others.length === waiting.length) return;
    await this.#store.dispatch(id, { type: 'moved', position: positionAt(others, index) });
  }

  /** Adds a copy of a request directly after it. */
  async duplicate(id: string): Promise<void> {
    const waiting = await this.#store.waiting();
    const index = waiting.findIndex(({ prediction }) => prediction.id === id);
    const original = waiting[index];
    if (!original) return;
    const { pauseAfter: _, ...prediction } = original.prediction;
    const position = positionAt(waiting, index + 1);
    await this.#store.create({ ...prediction, id: newPredictionId(), position }, original.source);
  }

  /**
   * Holds a request while a person edits it: it does not run meanwhile, and the next one does.
   *
   * @returns a function that ends this; null where its turn has come, or another tab edits it
   */
  hold(id: string): Promise<(() => void) | null> {
    return new Promise((resolve, reject) => {
      // Shared, so that it differs from the lock of a tab that starts the request.
      const options = { mode: 'shared', ifAvailable: true } as const;
      const request = navigator.locks.request(predictionLock(id), options, async (lock) => {
        const isWaiting = (await this.#store.get(id))?.status === 'created';
        if (!lock || !isWaiting || (await modesOf(id)).length > 1) return resolve(null);
        await new Promise<void>((release) => resolve(release));
      });
      request.catch(reject);
    });
  }

  /** Whether the queue is paused, and why; null while it runs. */
  async pauseState(): Promise<QueuePause | null> {
    return ((await loadSetting(this.#store.database, pauseKey)) as QueuePause | undefined) ?? null;
  }

  /** Pauses the queue: a run is not affected, but nothing starts after it. */
  async pause(why: QueuePause = { reason: 'asked' }): Promise<void> {
    await this.#setPause(why);
  }

  /** Ends a pause; what waits runs in this tab, unless another one is at it. */
  async unpause(): Promise<void> {
    await this.#setPause(null);
    this.wake();
  }

  /** Pauses the run of this tab, and the queue with it: nothing else takes the GPU then. */
  async pauseRun(): Promise<void> {
    await Promise.all([this.runner.pause(), this.#pauseAfter('PAUSED')]);
  }

  /** Ends the pause of {@link pauseRun}: its run goes on. */
  async unpauseRun(): Promise<void> {
    const pause = await this.pauseState();
    if (pause?.reason === 'run' && pause.code === 'PAUSED') await this.unpause();
  }

  /** Runs what waits in this tab, if anything can start. */
  wake(): void {
    this.#changed = true;
    if (!this.getSnapshot().active) void this.#run();
  }

  /** The same, unless the tab that has just ended a run, and has the model in memory, does. @returns a function that ends this */
  wakeLater(): () => void {
    const timer = setTimeout(() => this.wake(), takeoverMs);
    return () => clearTimeout(timer);
  }

  async #setPause(pause: QueuePause | null): Promise<void> {
    await saveSetting(this.#store.database, pauseKey, pause);
  }

  /** Runs requests until none can start. */
  async #run(): Promise<void> {
    let last: string | null = null;
    let ran = false;
    this.#tell(true);
    try {
      while (this.#changed) {
        this.#changed = false;
        for (let row = await this.#runNext(); row; row = await this.#runNext()) {
          ran = true;
          if (!isCancelled(row)) last = row.id;
        }
      }
    } catch {
      // The database cannot be read: the next change tries again.
    } finally {
      this.#tell(false);
      if (ran) for (const listener of this.#stopListeners) listener(last);
    }
  }

  /** Runs the first request that nobody edits. @returns its row; null where none can start */
  async #runNext(): Promise<Prediction | null> {
    await this.#idle();
    const isWorking = (await this.#store.working()).length > 0;
    if (isWorking || (await this.pauseState())) return null;
    for (const { prediction } of await this.#store.waiting()) {
      const { id } = prediction;
      if ((await modesOf(id)).includes('shared')) {
        this.#follow(id);
        continue;
      }
      const started = await this.#start(id);
      if (!started) return null;
      if (prediction.pauseAfter) await this.pause();
      const row = await started.ended;
      if ('error' in row) await this.#pauseAfter(row.error.code);
      return row;
    }
    return null;
  }

  /** @returns null where it cannot be started */
  async #start(id: string): Promise<StartedRun | null> {
    try {
      return await this.runner.startWaiting(id);
    } catch (thrown) {
      const error = toKinoraError(thrown);
      const isWaiting = (await this.#store.get(id))?.status === 'created';
      // Another tab was quicker, or has removed it.
      if (error.code === 'BUSY' || !isWaiting) this.#follow(id);
      else await this.pause({ reason: 'entry', error: error.toRecord() });
      return null;
    }
  }

  /** Goes on when no tab edits a request, or works on it, any more. */
  #follow(id: string): void {
    if (this.#held.has(id)) return;
    this.#held.add(id);
    navigator.locks
      .request(predictionLock(id), () => {})
      .finally(() => {
        this.#held.delete(id);
        this.#tell(this.getSnapshot().active);
        this.wakeLater();
      })
      .catch(() => {}); // Without a lock the request is looked at again with the next change.
  }

  /**
   * Pauses the queue after a failure that would hit the next run as well: of the device, of the storage or of
   * the model's files. What is wrong with one request says nothing of the next one.
   */
  async #pauseAfter(code: ErrorCode): Promise<void> {
    if (isResumable(code) && (await this.#store.waiting()).length > 0) {
      await this.pause({ reason: 'run', code });
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

  #tell(active: boolean): void {
    this.set({ active, held: !active && this.#held.size > 0 });
  }
}

/** The modes in which tabs hold the lock of a request: shared while it is edited. */
async function modesOf(id: string): Promise<(LockMode | undefined)[]> {
  const { held = [] } = await navigator.locks.query();
  return held.filter(({ name }) => name === predictionLock(id)).map(({ mode }) => mode);
}

/** A position between the neighbours of an index, so that only the moved request is written. */
function positionAt(others: readonly Waiting[], index: number): number {
  const positionOf = (at: number) => others[at]?.prediction.position;
  const [before, after] = [positionOf(Math.min(index, others.length) - 1), positionOf(index)];
  if (before === undefined) return (after ?? 1) - 1;
  return after === undefined ? before + 1 : (before + after) / 2;
}
