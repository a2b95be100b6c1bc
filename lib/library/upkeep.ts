import { type ComponentId, toKinoraError } from '../contract';
import { deleteComponent, modelLock, readStoredComponent, verifyComponent } from '../weights/store';
import { isKeptStart } from '../weights/store/kept-start';
import type { LibraryEnvironment } from './environment';
import type { ManagedModel } from './managed-model';
import type { Tabs } from './tabs';

/**
 * Compares a stored part with its checksums; a damaged one is deleted, and says why.
 *
 * @throws the signal's reason
 */
async function verifyPart(
  model: ManagedModel,
  component: ComponentId,
  signal: AbortSignal,
): Promise<void> {
  const { bytesStored, bytesTotal } = model.part(component);
  // As bytes of its source files, like everything else that is summed up.
  const bytes = bytesTotal ?? bytesStored;
  try {
    await verifyComponent(model.folder.folder(component), {
      signal,
      onProgress: (done, total) => {
        const bytesDone = Math.round((bytes * done) / total);
        model.dispatch(component, { type: 'progress', bytesDone, bytesTotal: bytes, bytesStored });
      },
    });
    model.dispatch(component, { type: 'completed', bytes, bytesStored });
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    const error = toKinoraError(thrown);
    if (!error.code.startsWith('MODEL_FILE_')) throw error;
    await deleteComponent(model.folder.folder(component));
    model.dispatch(component, { type: 'removed', error: error.toRecord() });
  }
}

/** Deletes what is stored of a model, but for the parts that another one needs. */
export async function deleteParts(model: ManagedModel): Promise<void> {
  for (const { component } of model.parts) {
    if (model.isSharedInUse(component)) continue;
    await deleteComponent(model.folder.folder(component));
    model.dispatch(component, { type: 'removed' });
  }
  await model.refresh();
}

/**
 * Deletes what is not complete of a part; what is complete stays, also where it was to be replaced, and what another
 * model waits for.
 */
export async function dropUnfinished(
  model: ManagedModel,
  component: ComponentId,
  environment: LibraryEnvironment,
): Promise<void> {
  if (model.isWantedByOther(component)) return;
  const folder = model.folder.folder(component);
  const drop = async () => {
    if (!(await readStoredComponent(folder))) return deleteComponent(folder);
    for (const name of await folder.list()) if (isKeptStart(name)) await folder.remove(name);
  };
  const home = model.homeOf(component);
  if (home === model.manifest.id) return drop();
  // A download of it for another model goes on.
  await environment.tryLock(modelLock(home), drop);
}

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
      const components = model.stored.map(({ component }) => component);
      // All at once: together they are what is to be checked.
      for (const component of components) model.dispatch(component, { type: 'verifying' });
      try {
        for (const component of components) await verifyPart(model, component, signal);
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
