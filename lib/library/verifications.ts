import type { ManagedModel } from './managed-model';
import type { Tabs } from './tabs';
import { verifyPart } from './upkeep';

/** The models that this tab compares with their checksums. */
export class Verifications {
  readonly #running = new Map<string, AbortController>();

  constructor(readonly tabs: Tabs) {}

  /** Compares all that is stored of a model. Resolves also when it was cancelled. */
  async run(model: ManagedModel): Promise<void> {
    const { id } = model.manifest;
    await this.tabs.alone(model, async () => {
      const controller = new AbortController();
      const { signal } = controller;
      this.#running.set(id, controller);
      try {
        for (const { component } of model.stored) await verifyPart(model, component, signal);
      } catch (thrown) {
        if (!signal.aborted) throw thrown;
      } finally {
        this.#running.delete(id);
        await model.refresh();
      }
    });
  }

  cancel(model: ManagedModel): void {
    this.#running.get(model.manifest.id)?.abort();
  }
}
