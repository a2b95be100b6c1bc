import { KinoraError, progressOf } from '../contract';
import { modelLock } from '../weights/store';
import type { LibraryEnvironment, LibraryMessage } from './environment';
import type { ManagedModel } from './managed-model';

/** One tab of a browser works on a model; the others show how far it is. */
export class Tabs {
  /** What this tab does with each model, one thing after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** The models whose lock this tab holds, by id. */
  readonly #working = new Map<string, ManagedModel>();
  /** The models whose lock this tab waits for to be free. */
  readonly #followed = new Set<string>();

  constructor(readonly environment: LibraryEnvironment) {}

  /** Whether this tab works on a model. */
  worksOn(id: string): boolean {
    return this.#working.has(id);
  }

  /**
   * Works on a model as the only one of all tabs, after what this one does with it.
   *
   * @throws KinoraError `MODEL_BUSY`
   */
  alone(model: ManagedModel, work: () => Promise<void>): Promise<void> {
    const { id } = model.manifest;
    const before = this.#turns.get(id) ?? Promise.resolve();
    const turn = before.then(() => this.#locked(model, work));
    this.#turns.set(
      id,
      // The next turn begins however this one ends.
      turn.catch(() => undefined),
    );
    return turn;
  }

  /** Resolves when this tab does nothing with a model any more. */
  async settled(model: ManagedModel): Promise<void> {
    await this.#turns.get(model.manifest.id);
  }

  async #locked(model: ManagedModel, work: () => Promise<void>): Promise<void> {
    const { id } = model.manifest;
    const acquired = await this.environment.tryLock(modelLock(id), async () => {
      this.#working.set(id, model);
      model.onChange();
      try {
        await work();
      } finally {
        this.#working.delete(id);
      }
    });
    if (!acquired) throw modelBusy(model);
  }

  /** Tells the other tabs how far this one is. */
  announce(): void {
    for (const [id, model] of this.#working) {
      this.environment.channel.post({ type: 'working', id, progress: progressOf(model.parts) });
    }
  }

  /** Shows how far another tab is with a model, until its lock is free. */
  follow(
    model: ManagedModel,
    { progress }: Extract<LibraryMessage, { type: 'working' }>,
    onFree: () => Promise<void>,
  ): void {
    const { id } = model.manifest;
    model.follow(progress);
    if (this.#followed.has(id)) return;
    this.#followed.add(id);
    // The lock of a tab that ends is released as well.
    const free = this.environment.whenFree(modelLock(id)).then(() => {
      this.#followed.delete(id);
      return onFree();
    });
    // It is rejected when the tab no longer waits.
    free.catch(() => undefined);
  }
}

/** The error for a model whose lock another tab or a run holds. */
export function modelBusy({ manifest: { name } }: ManagedModel): KinoraError {
  return new KinoraError(
    'MODEL_BUSY',
    `${name} is in use: another tab fetches or checks it, or a video is being made with it.`,
  );
}
