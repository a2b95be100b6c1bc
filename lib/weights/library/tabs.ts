import { type ComponentId, KinoraError } from '../../contract';
import { modelLock } from '../store';
import type { LibraryEnvironment, LibraryMessage } from './environment';
import type { ManagedModel } from './managed-model';

/** Between the tabs: one works on a model, the others show what it does and may ask it to stop. */
export class Tabs {
  readonly #environment: LibraryEnvironment;
  /** What this tab does with each model, one thing after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(environment: LibraryEnvironment) {
    this.#environment = environment;
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
      turn.catch(() => undefined),
    );
    return turn;
  }

  /** Resolves when this tab does nothing with a model any more. */
  async settled(model: ManagedModel): Promise<void> {
    await this.#turns.get(model.manifest.id);
  }

  async #locked(model: ManagedModel, work: () => Promise<void>): Promise<void> {
    const { id, name } = model.manifest;
    const taken = await this.#environment.tryLock(modelLock(id), work);
    if (taken) return;
    throw new KinoraError(
      'MODEL_BUSY',
      `${name} is in use: another tab fetches or checks it, or a video is being made with it.`,
    );
  }

  /** Sends a command to the tab that works on the model; false when no other one does. */
  ask(
    model: ManagedModel,
    type: 'pause' | 'resume' | 'cancel',
    component: ComponentId | undefined,
  ): boolean {
    if (!model.elsewhere) return false;
    const { id } = model.manifest;
    this.#environment.channel.post({ type, id, component: component ?? null });
    return true;
  }

  /** Shows the others where a model stands on which this tab works. */
  show(model: ManagedModel): void {
    const { precision, parts, stored, bytesPerSecond } = model.entry();
    const entry = { precision, parts, stored, bytesPerSecond };
    this.#environment.channel.post({ type: 'model', id: model.manifest.id, entry });
  }

  /** Shows what another tab does with a model, until it lets go of it. */
  follow(
    model: ManagedModel,
    { entry }: Extract<LibraryMessage, { type: 'model' }>,
    onFree: () => Promise<void>,
  ): void {
    const first = !model.elsewhere;
    model.follow(entry);
    if (!first) return;
    // Also a tab that dies lets go of its lock.
    const free = this.#environment.whenFree(modelLock(model.manifest.id));
    free.then(onFree).catch(() => undefined);
  }
}
