import { type ComponentId, type Precision, toKinoraError } from '../../contract';
import { Download } from './download';
import type { LibraryEnvironment } from './environment';
import type { HubAccess } from './hub-access';
import { isBundled, type ManagedModel } from './managed-model';
import { planDownload, requireRoom } from './plan';
import type { Shelf } from './shelf';
import type { LocalFiles } from './sources';
import type { Tabs } from './tabs';
import { deletePart } from './upkeep';

const noFiles: LocalFiles = new Map();

/** The downloads of this tab, and what is done to them. */
export class Downloads {
  readonly #running = new Map<string, Download>();

  constructor(
    readonly environment: LibraryEnvironment,
    readonly shelf: Shelf,
    readonly tabs: Tabs,
    readonly hubs: HubAccess,
  ) {}

  /** Ids of the models that this tab works on. */
  get running(): ReadonlySet<string> {
    return new Set(this.#running.keys());
  }

  /** Fetches, converts and stores the parts that are not there in this precision. */
  async start(
    model: ManagedModel,
    precision: Precision,
    components: readonly ComponentId[],
    local = noFiles,
  ): Promise<void> {
    const { manifest } = model;
    if (isBundled(manifest)) return;
    await this.tabs.alone(model, async () => {
      const wanted = components.filter(
        (component) => local.has(component) || !model.has(component, precision),
      );
      if (wanted.length === 0) return;
      await this.#requireRoom(model, precision, local, wanted);
      await this.shelf.choose((choices) => ({
        ...choices,
        precision: { ...choices.precision, [manifest.id]: precision },
      }));
      // Local files are not to be had again after a reload.
      const fetched = wanted.filter((component) => !local.has(component));
      await this.shelf.want(model, (before) => [...before, ...fetched]);
      const client = this.hubs.client(model);
      const download = new Download(this.environment, client, model, precision, local);
      this.#running.set(manifest.id, download);
      try {
        for (const component of wanted) {
          // Kept in another precision, or to be replaced by a local file.
          if (model.part(component).status === 'complete') await deletePart(model, component);
          download.queue(component);
        }
        await download.run();
      } finally {
        this.#running.delete(manifest.id);
        const gone = (one: ComponentId) =>
          ['complete', 'absent'].includes(model.part(one).status) && !model.part(one).error;
        await this.shelf.want(model, (before) => before.filter((one) => !gone(one)));
      }
    });
  }

  async pause(model: ManagedModel, component?: ComponentId): Promise<void> {
    if (this.tabs.ask(model, 'pause', component)) return;
    const running = this.#running.get(model.manifest.id);
    for (const one of chosen(model, component)) running?.pause(one);
  }

  async resume(model: ManagedModel, component?: ComponentId): Promise<void> {
    if (this.tabs.ask(model, 'resume', component)) return;
    const stopped = chosen(model, component).filter((one) =>
      ['paused', 'failed'].includes(model.part(one).status),
    );
    const running = this.#running.get(model.manifest.id);
    if (running) {
      for (const one of stopped) running.queue(one);
      return;
    }
    await this.start(model, model.precision ?? model.manifest.precision, stopped);
  }

  async cancel(model: ManagedModel, component?: ComponentId): Promise<void> {
    if (this.tabs.ask(model, 'cancel', component)) return;
    const unfinished = chosen(model, component).filter(
      (one) => !['complete', 'verifying'].includes(model.part(one).status),
    );
    await this.shelf.want(model, (before) => before.filter((one) => !unfinished.includes(one)));
    const running = this.#running.get(model.manifest.id);
    if (running) {
      for (const one of unfinished) await running.cancel(one);
      return;
    }
    await this.tabs.alone(model, async () => {
      for (const one of unfinished) await deletePart(model, one);
    });
  }

  /** Without a connection there are no sizes: then the download waits for it, and not for this. */
  async #requireRoom(
    model: ManagedModel,
    precision: Precision,
    local: LocalFiles,
    wanted: readonly ComponentId[],
  ): Promise<void> {
    const storage = await this.environment.storage();
    const { architecture } = this.environment;
    const client = this.hubs.brief();
    try {
      requireRoom(
        await planDownload(model, precision, client, architecture, storage, local, wanted),
      );
    } catch (thrown) {
      const { code } = toKinoraError(thrown);
      const unknown = ['HUB_UNREACHABLE', 'HUB_BUSY', 'MODEL_FILE_MISSING'].includes(code);
      if (!unknown) throw thrown;
    }
  }
}

function chosen(model: ManagedModel, component: ComponentId | undefined): readonly ComponentId[] {
  const all = model.parts.map((part) => part.component);
  return component === undefined ? all : all.filter((one) => one === component);
}
