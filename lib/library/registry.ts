import {
  type AdapterChoices,
  type ComponentId,
  finishers,
  isBundled,
  KinoraError,
  languageModels,
  type ModelManifest,
  partOfTool,
  type ToolManifest,
  toKinoraError,
} from '../contract';
import type { LoraBase } from '../pipeline/installation';
import { familyOf } from '../pipeline/open';
import { modelFolderOf, readStoredComponent, storeOfModel } from '../weights/store';
import type { LibraryEnvironment, ListedModel } from './environment';
import { ManagedModel } from './managed-model';
import {
  addedModels,
  addedTools,
  type Choices,
  choicesLock,
  readChoices,
  writeAddedModel,
  writeChoices,
} from './records';
import { shareParts } from './sources';

/** The models there are, as they lie on disk, and what the user has chosen for each. */
export class ModelRegistry {
  readonly #models = new Map<string, ManagedModel<ModelManifest>>();
  readonly #tools = new Map<string, ManagedModel>();
  #choices: Choices = { hub: null, hubToken: null, precision: {}, adapter: {}, wanted: {} };

  /** @param onChange called after each change of a model */
  constructor(
    readonly environment: LibraryEnvironment,
    readonly onChange: () => void,
  ) {}

  get choices(): Choices {
    return this.#choices;
  }

  get models(): readonly ManagedModel<ModelManifest>[] {
    return [...this.#models.values()];
  }

  get tools(): readonly ManagedModel[] {
    return [...this.#tools.values()];
  }

  /** The ids of all models and tools. */
  get ids(): ReadonlySet<string> {
    return new Set([...this.#models.keys(), ...this.#tools.keys()]);
  }

  /** Bytes of all models and tools, of what models share once. */
  get bytesStored(): number {
    const bytes = new Map<string, number>();
    for (const model of [...this.models, ...this.tools]) {
      for (const { component, bytesStored } of model.parts) {
        const place = `${model.homeOf(component)}/${component}`;
        bytes.set(place, Math.max(bytes.get(place) ?? 0, bytesStored));
      }
    }
    return [...bytes.values()].reduce((sum, one) => sum + one, 0);
  }

  find(id: string): ManagedModel | undefined {
    return this.#models.get(id) ?? this.#tools.get(id);
  }

  /** @throws KinoraError `MODEL_UNKNOWN` */
  get(id: string): ManagedModel {
    const model = this.find(id);
    if (!model) throw new KinoraError('MODEL_UNKNOWN', `There is no model "${id}".`);
    return model;
  }

  /** The manifests that come with Kinora. */
  get listed(): readonly ModelManifest[] {
    return this.models.filter(({ origin }) => origin === 'listed').map(({ manifest }) => manifest);
  }

  /** The models whose parts serve where an added one has only some: the first listed one with the same parts. */
  get bases(): readonly ListedModel[] {
    const bases = new Map<string, ListedModel>();
    for (const { listed, origin } of this.models) {
      const { family, components } = listed.manifest;
      const kind = [family, ...components.map(({ id }) => id).sort()].join();
      if (origin === 'listed' && !bases.has(kind)) bases.set(kind, listed);
    }
    return [...bases.values()];
  }

  async load(): Promise<void> {
    await this.reloadChoices();
    for (const tool of [...languageModels, ...finishers]) this.addTool(tool, 'listed');
    for (const listed of await this.environment.listed()) this.add(listed, 'listed');
    // All models that share an unfinished part decide which of them it belongs to.
    for (const model of [...this.models, ...this.tools]) await model.refresh();
    await this.#addAdded();
  }

  /** Reads what another tab has changed, of every model that this tab does not work on. */
  async reload(worksOn: (id: string) => boolean): Promise<void> {
    await this.reloadChoices();
    const { models, tools } = this.environment;
    const added = [...(await addedModels(models)), ...(await addedTools(tools))];
    for (const model of [...this.models, ...this.tools]) {
      const { id } = model.manifest;
      if (worksOn(id)) continue;
      const gone = model.origin === 'added' && !added.some((manifest) => manifest.id === id);
      if (gone) this.#forget(id);
      if (!model.elsewhere) await model.refresh();
    }
    await this.#addAdded();
  }

  /** Lists a model; what is on disk of it is read with its first `refresh`. */
  add(listed: ListedModel, origin: 'listed' | 'added'): ManagedModel<ModelManifest> {
    const { id } = listed.manifest;
    const { models } = this.environment;
    const folder = storeOfModel(models, listed.manifest);
    const { components } = listed.manifest;
    // Without these it cannot run.
    const own = components.filter(({ faster }) => !faster).map((component) => component.id);
    const needed = ['configuration', ...own];
    const model = isBundled(listed.manifest)
      ? new ManagedModel(listed, 'bundled', [], folder, this.onChange)
      : new ManagedModel(listed, origin, needed, folder, this.onChange, () =>
          this.#installationOf(listed.manifest),
        );
    model.sharing = (component) => {
      const home = model.homeOf(component);
      return this.models.filter((other) => other !== model && other.homeOf(component) === home);
    };
    this.#models.set(id, model);
    this.#apply(this.#choices);
    return model;
  }

  /** As {@link add}. */
  addTool(manifest: ToolManifest, origin: 'listed' | 'added'): ManagedModel {
    const { id } = manifest;
    const folder = this.environment.tools.folder(id);
    const listed = { manifest, base: null };
    const part = partOfTool(manifest);
    const tool = new ManagedModel(listed, origin, [part], folder, this.onChange);
    this.#tools.set(id, tool);
    this.#apply(this.#choices);
    return tool;
  }

  #forget(id: string): void {
    this.#models.delete(id);
    this.#tools.delete(id);
  }

  /** Takes an added model or tool off the list, with everything that is stored of it. */
  async remove(model: ManagedModel): Promise<void> {
    const { id } = model.manifest;
    await model.folder.clear();
    this.#forget(id);
    await this.#note((choices) => {
      const { [id]: _, ...precision } = choices.precision;
      const { [id]: __, ...wanted } = choices.wanted;
      const { [id]: ___, ...adapter } = choices.adapter;
      return { ...choices, precision, wanted, adapter };
    });
  }

  /** Changes the choices as they are on disk: another tab may have made some meanwhile. */
  async choose(change: (choices: Choices) => Choices): Promise<void> {
    const { models, withLock } = this.environment;
    await withLock(choicesLock, async () => {
      this.#apply(change(await readChoices(models)));
      await writeChoices(models, this.#choices);
    });
  }

  /** Remembers which adapters of a model are to be had. */
  async chooseAdapters({ manifest: { id } }: ManagedModel, chosen: AdapterChoices): Promise<void> {
    await this.choose((choices) => ({
      ...choices,
      adapter: { ...choices.adapter, [id]: [...chosen] },
    }));
  }

  /** Notes which parts of a model are to be had, and their sizes, over the end of this worker. */
  async want(
    { manifest: { id } }: ManagedModel,
    change: (wanted: Map<ComponentId, number | null>) => void,
  ): Promise<void> {
    await this.#note((choices) => {
      const { [id]: before = {}, ...others } = choices.wanted;
      const wanted = new Map(Object.entries(before));
      change(wanted);
      const own = wanted.size > 0 && { [id]: Object.fromEntries(wanted) };
      return { ...choices, wanted: { ...others, ...own } };
    });
  }

  /**
   * As {@link choose}, for what is only good to know: in a full storage it stays unwritten, for it must
   * still be possible to stop, and to delete what fills it.
   */
  async #note(change: (choices: Choices) => Choices): Promise<void> {
    try {
      await this.choose(change);
    } catch (thrown) {
      if (toKinoraError(thrown).code !== 'STORAGE_FULL') throw thrown;
    }
  }

  async reloadChoices(): Promise<void> {
    const { models, withLock } = this.environment;
    // While a file is replaced, some browsers have none to read.
    this.#apply(await withLock(choicesLock, () => readChoices(models)));
  }

  /** The configurations of the models that a LoRA may be made for, as far as they are here. */
  async configurations(): Promise<(LoraBase & { readonly id: string })[]> {
    const configurations = [];
    const bases = new Set(this.bases);
    // The base models first: a LoRA that fits none is compared with them.
    const isBase = ({ listed }: ManagedModel<ModelManifest>) => bases.has(listed);
    const first = this.models.filter(isBase);
    for (const model of new Set([...first, ...this.models])) {
      const { id, name } = model.manifest;
      const stored = model.folder.folder('configuration');
      const there = (await readStoredComponent(stored)) !== null;
      const folder = there ? modelFolderOf(stored) : model.listed.base;
      if (!folder) continue;
      const installation = this.#installationOf(model.manifest);
      configurations.push({ id, name, installation, configuration: folder });
    }
    return configurations;
  }

  #installationOf(manifest: ModelManifest) {
    return familyOf(this.environment.families, manifest).installation;
  }

  async #addAdded(): Promise<void> {
    const { models } = this.environment;
    for (const manifest of await addedModels(models)) {
      if (this.find(manifest.id)) continue;
      const folder = models.folder(manifest.id);
      // One that an earlier version wrote may name a folder of which it has no part.
      const shared = await shareParts(manifest, this.listed, async ({ id, keptWith }) => {
        return keptWith === undefined || (await folder.folder(id).list()).length > 0;
      });
      const before = JSON.stringify(manifest.components);
      if (JSON.stringify(shared.components) !== before) await writeAddedModel(folder, shared);
      await this.add({ manifest: shared, base: null }, 'added').refresh();
    }
    for (const manifest of await addedTools(this.environment.tools)) {
      if (!this.find(manifest.id)) await this.addTool(manifest, 'added').refresh();
    }
  }

  #apply(choices: Choices): void {
    this.#choices = choices;
    for (const model of [...this.models, ...this.tools]) {
      const { id } = model.manifest;
      model.precision = choices.precision[id] ?? null;
      model.adapters = choices.adapter[id];
      model.wanted = new Map(Object.entries(choices.wanted[id] ?? {}));
    }
  }
}
