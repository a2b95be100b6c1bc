import {
  type ComponentId,
  type DownloadPlan,
  type LocalFile,
  type PartStatus,
  type Precision,
  toKinoraError,
} from '../contract';
import { installProgress } from '../weights/store';
import { Download } from './download';
import { planDownload, requireRoom } from './download-plan';
import type { LibraryEnvironment } from './environment';
import type { HubAccess } from './hub-access';
import type { LocalFiles } from './local-files';
import { chooseAgain, isLocal } from './local-files';
import type { ManagedModel } from './managed-model';
import type { ModelRegistry } from './registry';
import type { Tabs } from './tabs';
import { requireTerms } from './terms';
import { dropUnfinished } from './upkeep';

const noFiles: LocalFiles = new Map();

/** The downloads of this tab, and what is done to them. */
export class Downloads {
  readonly #running = new Map<string, Download>();
  /** Downloads in preparation, which have not begun: nothing is written for them. */
  readonly #preparing = new Map<string, { precision: Precision; stop: AbortController }>();
  /** Files that were picked in this tab, by model: a resume has them still. */
  readonly #picked = new Map<string, Map<ComponentId, readonly LocalFile[]>>();

  constructor(
    readonly environment: LibraryEnvironment,
    readonly registry: ModelRegistry,
    readonly tabs: Tabs,
    readonly hubs: HubAccess,
  ) {}

  /** Fetches, converts and stores the parts that are not there in this precision. */
  async start(
    model: ManagedModel,
    precision: Precision,
    components: readonly ComponentId[],
    local = noFiles,
  ): Promise<void> {
    if (local.size === 0 && this.#join(model, precision, components)) {
      return this.tabs.settled(model);
    }
    await this.tabs.alone(model, async () => {
      const requested = components.filter(
        (component) =>
          !model.has(component, precision) ||
          (local.has(component) && !model.isSharedInUse(component)),
      );
      if (requested.length === 0) return;
      const fetches = requested.some((component) => !local.has(component));
      if (fetches) await requireTerms(this.environment.terms);
      const sizes = await this.#prepare(model, precision, local, requested);
      if (!sizes) return;
      this.#pick(model, requested, local);
      await this.#run(model, precision, local, requested, sizes);
    });
  }

  pause(model: ManagedModel, component?: ComponentId): void {
    this.#preparing.get(model.manifest.id)?.stop.abort();
    const running = this.#running.get(model.manifest.id);
    for (const one of chosen(model, component)) running?.pause(one);
  }

  /**
   * Goes on with what stands still, each part from where it comes.
   *
   * @throws KinoraError `FILE_UNREADABLE` naming local files that have to be chosen again, once the
   * other parts are done
   */
  async resume(model: ManagedModel, component?: ComponentId): Promise<void> {
    const stopped = chosen(model, component).filter((one) => resumable.has(model.part(one).status));
    const running = this.#running.get(model.manifest.id);
    if (running?.active) {
      for (const one of stopped) running.queue(one);
      return;
    }
    const picked = this.#picked.get(model.manifest.id);
    const local = new Map<ComponentId, readonly LocalFile[]>();
    const missing: string[] = [];
    const ready: ComponentId[] = [];
    for (const one of stopped) {
      const files = picked?.get(one);
      const begun = await installProgress(model.folder.folder(one));
      const names = (begun?.sources ?? []).filter(isLocal).map(({ name }) => name);
      if (files) local.set(one, files);
      if (files || names.length === 0) ready.push(one);
      else missing.push(...names);
    }
    if (ready.length > 0) {
      await this.start(model, model.precision ?? model.manifest.precision, ready, local);
    }
    if (missing.length > 0) throw chooseAgain(missing);
  }

  async cancel(model: ManagedModel, component?: ComponentId): Promise<void> {
    const unfinished = chosen(model, component).filter(
      (one) => !['complete', 'verifying'].includes(model.part(one).status),
    );
    await this.registry.want(model, (wanted) => {
      for (const one of unfinished) wanted.delete(one);
    });
    for (const one of unfinished) this.#picked.get(model.manifest.id)?.delete(one);
    const running = this.#running.get(model.manifest.id);
    this.#preparing.get(model.manifest.id)?.stop.abort();
    if (running?.active) {
      await Promise.all(unfinished.map((one) => running.cancel(one)));
      return component === undefined ? this.tabs.settled(model) : undefined;
    }
    await this.tabs.alone(model, async () => {
      for (const one of unfinished) {
        await dropUnfinished(model, one, this.environment);
        model.dispatch(one, { type: 'removed' });
        await model.refreshPart(one);
      }
    });
  }

  /** Ends what this tab fetches of a model: it is to be deleted. */
  stop(model: ManagedModel): void {
    const { id } = model.manifest;
    this.#picked.delete(id);
    this.#preparing.get(id)?.stop.abort();
    const running = this.#running.get(id);
    for (const { component } of model.parts) running?.pause(component);
  }

  /** Adds parts to a download that is under way; false when there is none of this precision. */
  #join(model: ManagedModel, precision: Precision, components: readonly ComponentId[]): boolean {
    const { id } = model.manifest;
    if (this.#preparing.get(id)?.precision === precision) return true;
    const running = this.#running.get(id);
    if (!running?.active || running.precision !== precision) return false;
    for (const one of components) if (!model.has(one, precision)) running.queue(one);
    return true;
  }

  #pick(model: ManagedModel, requested: readonly ComponentId[], local: LocalFiles): void {
    const picked = new Map(this.#picked.get(model.manifest.id));
    for (const component of requested) {
      const files = local.get(component);
      if (files) picked.set(component, files);
      else picked.delete(component);
    }
    this.#picked.set(model.manifest.id, picked);
  }

  async #run(
    model: ManagedModel,
    precision: Precision,
    local: LocalFiles,
    requested: readonly ComponentId[],
    sizes: ReadonlyMap<ComponentId, number>,
  ): Promise<void> {
    const { id } = model.manifest;
    // Local files are not to be had again after a reload.
    const fetched = requested.filter((component) => !local.has(component));
    await this.registry.want(model, (wanted) => {
      for (const one of fetched) wanted.set(one, sizes.get(one) ?? wanted.get(one) ?? null);
    });
    const choose = () => this.#choose(model, precision);
    // While a part is kept in another precision, that one is the model's.
    if (requested.every((component) => model.part(component).status !== 'complete')) await choose();
    const client = this.hubs.client(model);
    const download = new Download(this.environment, client, model, precision, local, choose);
    this.#running.set(id, download);
    try {
      for (const component of requested) {
        download.queue(component);
        const bytesTotal = sizes.get(component);
        // Each at once, so that the whole is known before the last header is read.
        if (bytesTotal) model.dispatch(component, { type: 'sized', bytesTotal });
      }
      await download.run();
    } finally {
      this.#running.delete(id);
      const gone = (one: ComponentId) =>
        ['complete', 'absent'].includes(model.part(one).status) && !model.part(one).error;
      for (const one of requested.filter(gone)) this.#picked.get(id)?.delete(one);
      await this.registry.want(model, (wanted) => {
        for (const one of wanted.keys()) if (gone(one)) wanted.delete(one);
      });
    }
  }

  async #choose({ manifest: { id }, precision: before }: ManagedModel, precision: Precision) {
    if (before === precision) return;
    await this.registry.choose((choices) => ({
      ...choices,
      precision: { ...choices.precision, [id]: precision },
    }));
  }

  /**
   * Checks the free storage. Without a connection no sizes are known: then the download begins all the same, and
   * waits for the connection.
   *
   * @returns the sizes of the parts; null when the check was aborted
   * @throws KinoraError `STORAGE_FULL`, and what the hub answers
   */
  async #prepare(
    model: ManagedModel,
    precision: Precision,
    local: LocalFiles,
    only: readonly ComponentId[],
  ): Promise<ReadonlyMap<ComponentId, number> | null> {
    const { id } = model.manifest;
    let parts: DownloadPlan['parts'] = [];
    const stop = new AbortController();
    const { signal } = stop;
    this.#preparing.set(id, { precision, stop });
    try {
      const storage = await this.environment.storage();
      const client = this.hubs.brief();
      const context = { client, storage, local, only, signal };
      const plan = await planDownload(model, precision, context);
      requireRoom(plan);
      parts = plan.parts;
    } catch (thrown) {
      const { code } = toKinoraError(thrown);
      const unknown = ['HUB_UNREACHABLE', 'HUB_BUSY', 'MODEL_FILE_MISSING'].includes(code);
      if (!unknown && !signal.aborted) throw thrown;
    } finally {
      this.#preparing.delete(id);
    }
    if (signal.aborted) return null;
    return new Map(parts.map(({ component, bytesTotal }) => [component, bytesTotal]));
  }
}

/** Statuses of parts that a resume goes on with. */
const resumable: ReadonlySet<PartStatus> = new Set(['paused', 'failed']);

function chosen(model: ManagedModel, component: ComponentId | undefined): readonly ComponentId[] {
  const all = model.parts.map((part) => part.component);
  return component === undefined ? all : all.filter((one) => one === component);
}
