import {
  type AdapterChoices,
  type ComponentId,
  type DownloadPlan,
  isWanted,
  KinoraError,
  type LibraryApi,
  type LibrarySnapshot,
  type LocalFile,
  type LoraEntry,
  type ModelEntry,
  type ModelSource,
  type Precision,
  partOfTool,
  type StorageReport,
  type ToolEntry,
  type ToolManifest,
} from '../contract';
import type { LoraFacts } from '../pipeline/installation';
import { blobFile } from '../weights/formats/source';
import { parseHub } from '../weights/hub';
import { openLoraFile } from '../weights/lora-metadata';
import { addedModel } from './add-model';
import { addedTool } from './add-tool';
import { planDownload } from './download-plan';
import { Downloads } from './downloads';
import type { LibraryEnvironment, LibraryMessage, SnapshotListener } from './environment';
import { HubAccess } from './hub-access';
import { type MatchedFiles, matchFiles, openWeights } from './local-files';
import type { LoraSource } from './lora-download';
import { LoraLibrary } from './lora-library';
import { inspectLora } from './loras';
import type { ManagedModel } from './managed-model';
import { writeAddedModel } from './records';
import { ModelRegistry } from './registry';
import { modelBusy, Tabs } from './tabs';
import { deleteParts, Verifications } from './upkeep';

/** Models and LoRAs of this browser: one for each tab, in its worker. */
export class Library implements LibraryApi {
  readonly #environment: LibraryEnvironment;
  readonly #listeners = new Set<SnapshotListener>();
  readonly #throttle = new Throttle(() => void this.#publish());
  readonly #registry: ModelRegistry;
  readonly #hubs: HubAccess;
  readonly #tabs: Tabs;
  readonly #downloads: Downloads;
  readonly #verifications: Verifications;
  readonly #loras: LoraLibrary;
  #storage: StorageReport = { usage: 0, quota: 0, persistent: false };
  #started: Promise<void> | undefined;

  constructor(environment: LibraryEnvironment) {
    this.#environment = environment;
    this.#registry = new ModelRegistry(environment, this.#throttle.call);
    this.#hubs = new HubAccess(environment, () => this.#registry.choices);
    this.#tabs = new Tabs(environment);
    this.#downloads = new Downloads(environment, this.#registry, this.#tabs, this.#hubs);
    this.#verifications = new Verifications(this.#tabs);
    this.#loras = new LoraLibrary(environment, this.#throttle.call);
  }

  async snapshot(): Promise<LibrarySnapshot> {
    await this.#start();
    this.#storage = await this.#readStorage();
    return this.#snapshot();
  }

  async subscribe(listener: SnapshotListener): Promise<void> {
    await this.#start();
    this.#listeners.add(listener);
    listener(this.#snapshot());
  }

  async setHub(base: string): Promise<void> {
    await this.#start();
    const hub = parseHub(base);
    await this.#registry.choose((choices) => ({ ...choices, hub }));
    this.#throttle.call();
  }

  async setHubToken(token: string | null, keep = true): Promise<void> {
    await this.#start();
    if (token !== null && !/^[!-~]{1,512}$/.test(token)) {
      throw new KinoraError('PARAMETER_INVALID', 'A token has letters, digits and signs only.');
    }
    const hub = this.#hubs.base;
    this.#hubs.setSessionToken(keep ? null : token);
    if (keep) {
      const hubToken = token === null ? null : { hub, token };
      await this.#registry.choose((choices) => ({ ...choices, hubToken }));
    }
    this.#changedOnDisk();
  }

  async addModel(source: ModelSource): Promise<ModelEntry> {
    await this.#start();
    const { families, models } = this.#environment;
    const manifest = await addedModel(source, {
      client: this.#hubs.brief(),
      families,
      bases: this.#registry.bases,
      listed: this.#registry.listed,
      taken: this.#registry.ids,
      models,
    });
    await writeAddedModel(models.folder(manifest.id), manifest);
    return this.#added(this.#registry.add({ manifest, base: null }, 'added'));
  }

  async addTool(source: ModelSource): Promise<ToolEntry> {
    await this.#start();
    const client = this.#hubs.brief();
    const manifest = await addedTool(source, client, this.#registry.ids);
    await writeAddedModel(this.#environment.tools.folder(manifest.id), manifest);
    return this.#added(this.#registry.addTool(manifest, 'added'));
  }

  async #added<M extends ToolManifest>(model: ManagedModel<M>) {
    await model.refresh();
    this.#environment.channel.post({ type: 'changed' });
    return model.entry();
  }

  async forgetModel(id: string): Promise<void> {
    const model = await this.#own(id);
    if (model.origin !== 'added') {
      throw new KinoraError('MODEL_UNKNOWN', `${model.manifest.name} was not added by you.`);
    }
    this.#stop(model);
    await this.#tabs.alone(model, async () => {
      await deleteParts(model);
      await this.#registry.remove(model);
    });
    this.#changedOnDisk();
  }

  async planDownload(...args: Parameters<LibraryApi['planDownload']>): Promise<DownloadPlan> {
    const [id, precision, adapters, without] = args;
    await this.#start();
    const model = this.#registry.get(id);
    const storage = await this.#readStorage();
    const client = this.#hubs.brief();
    const only = wantedOf(model, adapters, without);
    return planDownload(model, precision, { client, storage, adapters, only });
  }

  async download(...args: Parameters<LibraryApi['download']>): Promise<void> {
    const [id, precision, adapters, without] = args;
    const model = await this.#own(id);
    if (adapters) await this.#registry.chooseAdapters(model, adapters);
    await this.#downloads.start(model, precision, wantedOf(model, adapters, without));
    this.#changedOnDisk();
  }

  async pause(id: string, component?: ComponentId): Promise<void> {
    this.#downloads.pause(await this.#own(id), component);
  }

  async resume(id: string, component?: ComponentId): Promise<void> {
    await this.#downloads.resume(await this.#own(id), component);
    this.#changedOnDisk();
  }

  async cancel(id: string, component?: ComponentId): Promise<void> {
    const model = await this.#own(id);
    this.#verifications.cancel(model);
    await this.#downloads.cancel(model, component);
    this.#changedOnDisk();
  }

  async importFiles(id: string, precision: Precision, files: readonly LocalFile[]): Promise<void> {
    const model = await this.#own(id);
    const installation = model.installationOf?.();
    const opened = await openWeights(files);
    const { local, leftOut }: MatchedFiles = installation
      ? matchFiles(opened, installation)
      : { local: new Map([[partOfTool(model.manifest), opened.files]]), leftOut: '' };
    const known = model.parts.map(({ component }) => component);
    const components = known.filter((one) => local.has(one) || one === 'configuration');
    for (const one of local.keys()) {
      // A folder that was picked whole may also have files that are not needed.
      const listed = model.manifest.sources.some(({ component }) => component === one);
      if (known.includes(one) || (listed && known.some((part) => local.has(part)))) continue;
      throw new KinoraError('MODEL_WRONG_KIND', `${model.manifest.name} has no part "${one}".`);
    }
    const kept = components.filter((one) => model.isSharedInUse(one) && model.has(one, precision));
    await this.#downloads.start(model, precision, components, local);
    const notice = 'The file was left out: another model here has this part as well.';
    for (const one of kept) model.dispatch(one, { type: 'noticed', notice });
    const [first] = local.keys();
    // An added model's description says it, too.
    if (first && leftOut !== '' && !model.manifest.description.includes(leftOut)) {
      model.dispatch(first, { type: 'noticed', notice: leftOut });
    }
    this.#changedOnDisk();
  }

  async verify(id: string): Promise<void> {
    const model = await this.#own(id);
    try {
      await this.#verifications.run(model);
    } finally {
      this.#changedOnDisk();
    }
  }

  async deleteModel(id: string): Promise<void> {
    const model = await this.#own(id);
    this.#stop(model);
    await this.#tabs.alone(model, async () => {
      await this.#registry.want(model, (wanted) => wanted.clear());
      await deleteParts(model);
    });
    this.#changedOnDisk();
  }

  async addLora(source: LoraSource): Promise<LoraEntry> {
    await this.#start();
    const models = await this.#registry.configurations();
    try {
      const clients = { client: this.#hubs.client(), lookup: this.#hubs.brief() };
      return await this.#loras.add(source, clients, models);
    } finally {
      this.#changedOnDisk();
    }
  }

  async inspectLora(model: string, file: File): Promise<LoraFacts | null> {
    await this.#start();
    const { id } = this.#registry.get(model).manifest;
    const models = (await this.#registry.configurations()).filter((one) => one.id === id);
    if (models.length === 0) return null;
    const header = await openLoraFile(blobFile(file.name, file));
    return inspectLora(header, file.name, models);
  }

  async modelsOfLora(file: File): Promise<readonly string[]> {
    await this.#start();
    const header = await openLoraFile(blobFile(file.name, file));
    const fitting: string[] = [];
    for (const model of await this.#registry.configurations()) {
      // Then it does not fit this model.
      const facts = await inspectLora(header, file.name, [model]).catch(() => null);
      if (facts) fitting.push(model.id);
    }
    return fitting;
  }

  async deleteLora(name: string): Promise<void> {
    await this.#start();
    await this.#loras.delete(name);
    this.#changedOnDisk();
  }

  /** Ends what this tab does with a model that is to be deleted. */
  #stop(model: ManagedModel): void {
    this.#verifications.cancel(model);
    this.#downloads.stop(model);
  }

  #start(): Promise<void> {
    this.#started ??= this.#open();
    // The caller is told the reason; the next one tries again.
    this.#started.catch(() => {
      this.#started = undefined;
    });
    return this.#started;
  }

  async #open(): Promise<void> {
    const { channel } = this.#environment;
    await this.#registry.load();
    await this.#loras.start();
    this.#storage = await this.#readStorage();
    channel.listen((message) => this.#receive(message));
    channel.post({ type: 'hello' });
  }

  /**
   * A model that this tab may change.
   *
   * @throws KinoraError `MODEL_UNKNOWN`, `MODEL_BUSY` while another tab works on it
   */
  async #own(id: string): Promise<ManagedModel> {
    await this.#start();
    const model = this.#registry.get(id);
    if (model.elsewhere) throw modelBusy(model);
    return model;
  }

  #receive(message: LibraryMessage): void {
    switch (message.type) {
      case 'hello':
        this.#throttle.call();
        break;
      case 'changed':
        // The tab that made the change shows it; this one reads again with the next.
        this.#reload().catch(() => undefined);
        break;
      case 'working': {
        const model = this.#registry.find(message.id);
        if (!model || this.#tabs.worksOn(message.id)) return;
        this.#tabs.follow(model, message, async () => {
          await this.#registry.reloadChoices();
          await model.refresh();
        });
      }
    }
  }

  /** Reads what another tab has changed. */
  async #reload(): Promise<void> {
    await this.#registry.reload((id) => this.#tabs.worksOn(id));
    await this.#loras.load();
    this.#throttle.call();
  }

  #changedOnDisk(): void {
    this.#environment.channel.post({ type: 'changed' });
    // A part may be one of several models.
    this.#reload().catch(() => this.#throttle.call());
  }

  async #publish(): Promise<void> {
    this.#tabs.announce();
    // A browser that does not say how much is free leaves the last figure.
    this.#storage = await this.#readStorage().catch(() => this.#storage);
    const snapshot = this.#snapshot();
    for (const listener of this.#listeners) listener(snapshot);
  }

  /** The browser's own counter falls behind after a crash: the stored files count then. */
  async #readStorage(): Promise<StorageReport> {
    const { usage, quota, ...others } = await this.#environment.storage();
    const missed = Math.max(0, this.#bytesStored - usage);
    // The free space is measured on the disk, and is right.
    return { ...others, usage: usage + missed, quota: quota + missed };
  }

  get #bytesStored(): number {
    const loras = this.#loras.entries.reduce((sum, { bytes }) => sum + bytes, 0);
    return this.#registry.bytesStored + loras;
  }

  #snapshot(): LibrarySnapshot {
    return {
      hub: this.#hubs.base,
      hasHubToken: this.#hubs.hasToken,
      models: this.#registry.models.map((model) => model.entry()),
      tools: this.#registry.tools.map((tool) => tool.entry()),
      loras: this.#loras.entries,
      loraDownloads: this.#loras.downloads,
      storage: this.#storage,
      bytesStored: this.#bytesStored,
    };
  }
}

const betweenMs = 250;

/** Calls back after changes: at once, then at most four times a second, the last change included. */
class Throttle {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pending = false;

  constructor(readonly work: () => void) {}

  readonly call = (): void => {
    if (this.#timer !== undefined) {
      this.#pending = true;
      return;
    }
    this.work();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (!this.#pending) return;
      this.#pending = false;
      this.call();
    }, betweenMs);
  };
}

/** The parts of a download with these adapters. */
function wantedOf(
  { manifest, parts, adapters: before }: ManagedModel,
  adapters: AdapterChoices | undefined = before,
  without: readonly ComponentId[] = [],
): readonly ComponentId[] {
  return parts
    .map(({ component }) => component)
    .filter((one) => isWanted(manifest, one, adapters) && !without.includes(one));
}
