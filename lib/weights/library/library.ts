import {
  type ComponentId,
  type DownloadPlan,
  KinoraError,
  type LibraryApi,
  type LibrarySnapshot,
  type LocalFile,
  type LoraEntry,
  type ModelEntry,
  type ModelSource,
  type Precision,
  type StorageReport,
  toKinoraError,
} from '../../contract';
import { HubClient, parseAddress, parseHub, publicHub } from '../hub';
import { deleteComponent, modelFolderOf, readStoredComponent, verifyComponent } from '../store';
import { localManifest, manifestOf } from './add-model';
import { type Choices, readChoices, writeChoices } from './choices';
import { Download } from './download';
import type { LibraryEnvironment, LibraryMessage, SnapshotListener } from './environment';
import { matchFiles } from './import-files';
import type { LoraSource } from './lora-download';
import { LoraLibrary } from './lora-library';
import { isBundled, ManagedModel } from './managed-model';
import { planDownload, requireRoom } from './plan';
import { addedModels, writeAddedModel } from './registry';
import type { LocalFiles } from './sources';
import { Throttle } from './throttle';

/** The model whose parts serve where an added one has only some. */
const baseModel = 'wan2.2-ti2v-5b';

/** Held by the tab that downloads, converts, checks or deletes a model. */
export function modelLock(id: string): string {
  return `kinora:model:${id}`;
}

/** Models and LoRAs of this browser: one for each tab, in its worker. */
export class Library implements LibraryApi {
  readonly #environment: LibraryEnvironment;
  readonly #models = new Map<string, ManagedModel>();
  readonly #running = new Map<string, Download>();
  readonly #listeners = new Set<SnapshotListener>();
  readonly #throttle = new Throttle(() => void this.#publish());
  #client: HubClient;
  #choices: Choices = { hub: null, precision: {}, wanted: {} };
  readonly #loras: LoraLibrary;
  #storage: StorageReport = { usage: 0, quota: 0, persistent: false };
  #started: Promise<void> | undefined;

  constructor(environment: LibraryEnvironment) {
    this.#environment = environment;
    this.#loras = new LoraLibrary(environment, this.#throttle.call);
    this.#client = this.#createClient();
  }

  async snapshot(): Promise<LibrarySnapshot> {
    await this.#start();
    this.#storage = await this.#environment.storage();
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
    await this.#choose((choices) => ({ ...choices, hub }));
    this.#client = this.#createClient();
    this.#throttle.call();
  }

  async addModel(source: ModelSource): Promise<ModelEntry> {
    await this.#start();
    const base = this.#models.get(baseModel)?.manifest;
    if (!base) throw new KinoraError('MODEL_UNKNOWN', `The model ${baseModel} is not listed.`);
    const taken = new Set(this.#models.keys());
    const { architecture } = this.#environment;
    const context = { client: this.#createClient(), architecture, base, taken };
    const manifest =
      'files' in source
        ? await localManifest(source.files, context)
        : await manifestOf(
            parseAddress(source.address, this.#client.base, source.revision),
            context,
          );
    const folder = this.#environment.models.folder(manifest.id);
    await writeAddedModel(folder, manifest);
    const model = await this.#add({ manifest, base: null }, 'added');
    this.#environment.channel.post({ type: 'changed' });
    return model.entry();
  }

  async forgetModel(id: string): Promise<void> {
    const model = await this.#model(id);
    if (model.origin !== 'added') {
      throw new KinoraError('MODEL_UNKNOWN', `${model.manifest.name} was not added by you.`);
    }
    await this.#alone(model, async () => {
      await model.folder.clear();
      this.#models.delete(id);
    });
    await this.#choose((choices) => {
      const { [id]: _, ...precision } = choices.precision;
      return { ...choices, precision };
    });
    this.#changedOnDisk();
  }

  async planDownload(id: string, precision: Precision): Promise<DownloadPlan> {
    const model = await this.#model(id);
    const storage = await this.#environment.storage();
    const { architecture } = this.#environment;
    return planDownload(model, precision, this.#createClient(), architecture, storage);
  }

  async download(id: string, precision: Precision): Promise<void> {
    const model = await this.#model(id);
    const components = model.parts.map(({ component }) => component);
    await this.#download(model, precision, components, new Map());
  }

  async pause(id: string, component?: ComponentId): Promise<void> {
    const model = await this.#model(id);
    if (this.#forwarded(model, 'pause', component)) return;
    const running = this.#running.get(id);
    for (const one of chosen(model, component)) running?.pause(one);
  }

  async resume(id: string, component?: ComponentId): Promise<void> {
    const model = await this.#model(id);
    if (this.#forwarded(model, 'resume', component)) return;
    const running = this.#running.get(id);
    const stopped = chosen(model, component).filter((one) =>
      ['paused', 'failed'].includes(model.part(one).status),
    );
    if (running) {
      for (const one of stopped) running.queue(one);
      return;
    }
    await this.#download(model, model.precision ?? model.manifest.precision, stopped, new Map());
  }

  async cancel(id: string, component?: ComponentId): Promise<void> {
    const model = await this.#model(id);
    if (this.#forwarded(model, 'cancel', component)) return;
    const unfinished = chosen(model, component).filter(
      (one) => !['complete', 'verifying'].includes(model.part(one).status),
    );
    await this.#want(model, (before) => before.filter((one) => !unfinished.includes(one)));
    const running = this.#running.get(id);
    if (running) {
      for (const one of unfinished) await running.cancel(one);
      return;
    }
    await this.#alone(model, async () => {
      for (const one of unfinished) await this.#delete(model, one);
    });
    this.#changedOnDisk();
  }

  async importFiles(id: string, precision: Precision, files: readonly LocalFile[]): Promise<void> {
    const model = await this.#model(id);
    const local = await matchFiles(files, this.#environment.architecture);
    const known = model.parts.map(({ component }) => component);
    const components = known.filter((one) => local.has(one) || one === 'configuration');
    for (const one of local.keys()) {
      if (known.includes(one)) continue;
      throw new KinoraError('MODEL_WRONG_KIND', `${model.manifest.name} has no part "${one}".`);
    }
    await this.#download(model, precision, components, local);
  }

  async verify(id: string): Promise<void> {
    const model = await this.#model(id);
    await this.#alone(model, async () => {
      for (const { component } of model.stored) await this.#verify(model, component);
      await model.refresh();
    });
    this.#changedOnDisk();
  }

  async deleteModel(id: string): Promise<void> {
    const model = await this.#model(id);
    await this.#alone(model, async () => {
      await this.#want(model, () => []);
      for (const { component } of model.parts) await this.#delete(model, component);
      await model.refresh();
    });
    this.#changedOnDisk();
  }

  async addLora(source: LoraSource): Promise<LoraEntry> {
    await this.#start();
    try {
      return await this.#loras.add(source, this.#createClient(), await this.#configurations());
    } finally {
      this.#changedOnDisk();
    }
  }

  async deleteLora(name: string): Promise<void> {
    await this.#start();
    await this.#loras.delete(name);
    this.#changedOnDisk();
  }

  #start(): Promise<void> {
    this.#started ??= this.#open();
    this.#started.catch(() => {
      this.#started = undefined;
    });
    return this.#started;
  }

  async #open(): Promise<void> {
    const { models, channel } = this.#environment;
    this.#choices = await readChoices(models);
    this.#client = this.#createClient();
    for (const listed of await this.#environment.listed()) await this.#add(listed, 'listed');
    for (const manifest of await addedModels(models)) {
      if (!this.#models.has(manifest.id)) await this.#add({ manifest, base: null }, 'added');
    }
    await this.#loras.load();
    this.#storage = await this.#environment.storage();
    channel.listen((message) => this.#hear(message));
    channel.post({ type: 'hello' });
  }

  async #add(listed: ManagedModel['listed'], origin: 'listed' | 'added'): Promise<ManagedModel> {
    const { id } = listed.manifest;
    const folder = this.#environment.models.folder(id);
    const model = new ManagedModel(listed, origin, folder, this.#throttle.call);
    this.#models.set(id, model);
    this.#chosen(this.#choices);
    await model.refresh();
    return model;
  }

  async #model(id: string): Promise<ManagedModel> {
    await this.#start();
    const model = this.#models.get(id);
    if (!model) throw new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`);
    return model;
  }

  async #download(
    model: ManagedModel,
    precision: Precision,
    components: readonly ComponentId[],
    local: LocalFiles,
  ): Promise<void> {
    const { manifest } = model;
    if (isBundled(manifest)) return;
    await this.#alone(model, async () => {
      const wanted = components.filter(
        (component) => local.has(component) || !model.has(component, precision),
      );
      if (wanted.length === 0) return;
      const client = this.#createClient(model);
      await this.#requireRoom(model, precision, client, local, wanted);
      await this.#choose((choices) => ({
        ...choices,
        precision: { ...choices.precision, [manifest.id]: precision },
      }));
      // Local files are not to be had again after a reload.
      const fetched = wanted.filter((component) => !local.has(component));
      await this.#want(model, (before) => [...before, ...fetched]);
      const download = new Download(this.#environment, client, model, precision, local);
      this.#running.set(manifest.id, download);
      try {
        for (const component of wanted) {
          // Kept in another precision, or to be replaced by a local file.
          if (model.part(component).status === 'complete') {
            await this.#delete(model, component);
          }
          download.queue(component);
        }
        await download.run();
      } finally {
        this.#running.delete(manifest.id);
        const gone = (one: ComponentId) =>
          ['complete', 'absent'].includes(model.part(one).status) && !model.part(one).error;
        await this.#want(model, (before) => before.filter((one) => !gone(one)));
      }
    });
    this.#changedOnDisk();
  }

  /** Without a connection there are no sizes: then the download waits for it, and not for this. */
  async #requireRoom(
    model: ManagedModel,
    precision: Precision,
    client: HubClient,
    local: LocalFiles,
    wanted: readonly ComponentId[],
  ): Promise<void> {
    const storage = await this.#environment.storage();
    const { architecture } = this.#environment;
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

  async #verify(model: ManagedModel, component: ComponentId): Promise<void> {
    const before = model.part(component);
    model.dispatch(component, { type: 'verifying' });
    try {
      const stored = await verifyComponent(model.folder.folder(component), {
        onProgress: (bytesDone, bytesTotal) =>
          model.dispatch(component, {
            type: 'progress',
            bytesDone,
            bytesTotal,
            bytesStored: before.bytesStored,
          }),
      });
      const { bytesStored } = stored;
      model.dispatch(component, { type: 'completed', bytes: before.bytesDone, bytesStored });
    } catch (thrown) {
      const error = toKinoraError(thrown);
      if (!error.code.startsWith('MODEL_FILE_')) throw error;
      await deleteComponent(model.folder.folder(component));
      model.dispatch(component, { type: 'removed', error: error.toRecord() });
    }
  }

  async #delete(model: ManagedModel, component: ComponentId): Promise<void> {
    await deleteComponent(model.folder.folder(component));
    model.dispatch(component, { type: 'removed' });
    await model.refresh();
  }

  /** Works on a model as the only one of all tabs. @throws KinoraError `MODEL_BUSY` */
  async #alone(model: ManagedModel, work: () => Promise<void>): Promise<void> {
    const { id, name } = model.manifest;
    const taken = await this.#environment.tryLock(modelLock(id), work);
    if (!taken) throw new KinoraError('MODEL_BUSY', `Another tab is working on ${name}.`);
  }

  /** Sends a command to the tab that works on the model, if one does. */
  #forwarded(
    model: ManagedModel,
    type: 'pause' | 'resume' | 'cancel',
    component: ComponentId | undefined,
  ): boolean {
    if (!model.elsewhere) return false;
    const { id } = model.manifest;
    this.#environment.channel.post({ type, id, component: component ?? null });
    return true;
  }

  #hear(message: LibraryMessage): void {
    switch (message.type) {
      case 'hello':
        this.#throttle.call();
        break;
      case 'changed':
        this.#reload().catch(() => undefined);
        break;
      case 'model':
        this.#follow(message);
        break;
      default: {
        const { type, id, component } = message;
        if (!this.#running.has(id)) return;
        this[type](id, component ?? undefined).catch(() => undefined);
      }
    }
  }

  #follow({ id, entry }: Extract<LibraryMessage, { type: 'model' }>): void {
    const model = this.#models.get(id);
    if (!model || this.#running.has(id)) return;
    const first = !model.elsewhere;
    model.follow(entry);
    if (!first) return;
    // Also a tab that dies lets go of its lock.
    const { whenFree, models } = this.#environment;
    whenFree(modelLock(id))
      .then(() => readChoices(models))
      .then((choices) => {
        this.#chosen(choices);
        return model.refresh();
      })
      .catch(() => undefined);
  }

  /** Reads what another tab has changed. */
  async #reload(): Promise<void> {
    const { models } = this.#environment;
    this.#chosen(await readChoices(models));
    const added = await addedModels(models);
    for (const [id, model] of this.#models) {
      const gone = model.origin === 'added' && !added.some((manifest) => manifest.id === id);
      if (gone && !this.#running.has(id)) this.#models.delete(id);
      if (!this.#running.has(id) && !model.elsewhere) await model.refresh();
    }
    for (const manifest of added) {
      if (!this.#models.has(manifest.id)) await this.#add({ manifest, base: null }, 'added');
    }
    await this.#loras.load();
    this.#throttle.call();
  }

  #changedOnDisk(): void {
    this.#environment.channel.post({ type: 'changed' });
    this.#throttle.call();
  }

  async #publish(): Promise<void> {
    for (const id of this.#running.keys()) {
      const model = this.#models.get(id);
      if (!model) continue;
      const { precision, parts, stored, bytesPerSecond } = model.entry();
      const entry = { precision, parts, stored, bytesPerSecond };
      this.#environment.channel.post({ type: 'model', id, entry });
    }
    this.#storage = await this.#environment.storage().catch(() => this.#storage);
    const snapshot = this.#snapshot();
    for (const listener of this.#listeners) listener(snapshot);
  }

  #snapshot(): LibrarySnapshot {
    return {
      hub: this.#client.base,
      models: [...this.#models.values()].map((model) => model.entry()),
      loras: this.#loras.entries,
      loraDownloads: this.#loras.downloads,
      storage: this.#storage,
    };
  }

  /** A client that remembers no list of files: what was asked for long ago may have changed. */
  #createClient(model?: ManagedModel): HubClient {
    const base = this.#choices.hub ?? this.#environment.defaultHub ?? publicHub;
    return new HubClient(base, {
      ...this.#environment.hubOptions,
      onWait: (sentence, waitMs) => {
        const seconds = Math.ceil(waitMs / 1000);
        if (!model || seconds < 2) return;
        const notice = `Trying again in ${seconds} s: ${sentence}.`;
        for (const { component, status } of model.parts) {
          if (status === 'downloading') model.dispatch(component, { type: 'noticed', notice });
        }
      },
    });
  }

  /** Changes the choices as they are on disk: another tab may have made some meanwhile. */
  async #choose(change: (choices: Choices) => Choices): Promise<void> {
    const { models } = this.#environment;
    this.#chosen(change(await readChoices(models)));
    await writeChoices(models, this.#choices);
  }

  async #want(
    model: ManagedModel,
    change: (before: readonly ComponentId[]) => readonly ComponentId[],
  ): Promise<void> {
    const { id } = model.manifest;
    await this.#choose((choices) => {
      const { [id]: before = [], ...others } = choices.wanted;
      const wanted = [...new Set(change(before))];
      return { ...choices, wanted: wanted.length > 0 ? { ...others, [id]: wanted } : others };
    });
  }

  #chosen(choices: Choices): void {
    this.#choices = choices;
    for (const [id, model] of this.#models) {
      model.precision = choices.precision[id] ?? null;
      model.wanted = new Set(choices.wanted[id]);
    }
  }

  /** The configurations of the models that a LoRA may be made for. */
  async #configurations() {
    const found = [];
    // The base model first: a LoRA that fits none is compared with it.
    const base = this.#models.get(baseModel);
    for (const model of new Set([...(base ? [base] : []), ...this.#models.values()])) {
      const { name } = model.manifest;
      const stored = model.folder.folder('configuration');
      const there = (await readStoredComponent(stored)) !== null;
      const folder = there ? modelFolderOf(stored) : model.listed.base;
      if (folder) found.push({ name, configuration: folder });
    }
    return found;
  }
}

function chosen(model: ManagedModel, component: ComponentId | undefined): readonly ComponentId[] {
  const all = model.parts.map((part) => part.component);
  return component === undefined ? all : all.filter((one) => one === component);
}
