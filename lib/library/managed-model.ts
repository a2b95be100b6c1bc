import {
  type AdapterChoices,
  adapterPath,
  type ComponentId,
  componentIdsOf,
  isAdapterPart,
  type LibraryEntry,
  type PartState,
  type Precision,
  type StoredComponent,
  sourcesFor,
  type ToolManifest,
  type WorkProgress,
} from '../contract';
import type { ModelInstallation } from '../pipeline/installation';
import type { ModelFolder } from '../weights/formats/source';
import { installProgress, readStoredComponent, type StoreFolder } from '../weights/store';
import { absentPart, advancePart, type PartEvent } from './machine';

/** One model or tool of the library: what is on disk, and what happens to it in this tab. */
export class ManagedModel<M extends ToolManifest = ToolManifest> {
  readonly manifest: M;
  readonly rate = new Rate();
  /** Components whose bytes are counted as they come. */
  readonly #fetched = new Set<ComponentId>();
  precision: Precision | null = null;
  adapters: AdapterChoices | undefined;
  /** Parts whose download was begun and neither ended nor cancelled, with the sizes of their files. */
  wanted: ReadonlyMap<ComponentId, number | null> = new Map();
  #parts: PartState[];
  #stored: readonly StoredComponent[] = [];
  #elsewhere: WorkProgress | null = null;
  /** Set by the registry: the other models of which a component is a part as well, with the same files. */
  sharing: (component: ComponentId) => readonly ManagedModel[] = () => [];

  /** @param onChange called after each change of what {@link entry} gives */
  constructor(
    readonly listed: {
      readonly manifest: M;
      readonly base: ModelFolder | null;
      readonly hidden?: boolean;
    },
    readonly origin: LibraryEntry['origin'],
    /** The parts without which it cannot run. */
    readonly needed: readonly ComponentId[],
    /** Its folder in the store. */
    readonly folder: StoreFolder,
    readonly onChange: () => void,
    /** What its family makes of its configuration; null where it has none. */
    readonly installationOf: (() => ModelInstallation) | null = null,
  ) {
    this.manifest = listed.manifest;
    this.#parts = componentsOf(this.manifest, needed).map((component) => absentPart(component));
  }

  get parts(): readonly PartState[] {
    return this.#parts;
  }

  get stored(): readonly StoredComponent[] {
    return this.#stored;
  }

  part(component: ComponentId): PartState {
    return this.#parts.find((part) => part.component === component) ?? absentPart(component);
  }

  /** Whether the stored form of a component is the one for this precision and these adapters. */
  has(component: ComponentId, precision: Precision, adapters = this.adapters): boolean {
    const stored = this.#stored.find((one) => one.component === component);
    if (isAdapterPart(component) && stored && adapters) {
      const name = stored.sources[0]?.name ?? '';
      const sources = sourcesFor(this.manifest, precision, adapters);
      const offered = sources.find((source) => source.component === component);
      // The chosen one may be a local file, or one that the manifest does not offer any more.
      const kept = !offered || !name.includes('@');
      const paths = offered ? [...adapters, adapterPath(offered)] : adapters;
      return kept || paths.some((path) => name.startsWith(`${path}@`));
    }
    return stored !== undefined && this.serves(stored, precision);
  }

  /** Whether a component is stored in the form that this precision asks for. */
  serves(stored: StoredComponent, precision: Precision): boolean {
    const kept = this.#precisionsOf(stored.component);
    if (kept.length === 0 || stored.precision === precision) return true;
    // A part that is not stored in this precision is stored in the next finer one, which serves for both.
    return !kept.includes(precision) && kept.at(-1) === stored.precision;
  }

  /** Whether a begun download of a component can be resumed in this precision. */
  begunIn(component: ComponentId, precision: Precision): boolean {
    const same = (this.precision ?? precision) === precision;
    return same || this.#precisionsOf(component).length === 0;
  }

  #precisionsOf(component: ComponentId): readonly Precision[] {
    return this.manifest.components.find(({ id }) => id === component)?.precisions ?? [];
  }

  /** Id of the model with which the store keeps a component: mostly this one. */
  homeOf(component: ComponentId): string {
    const { components, id } = this.manifest;
    const kept = components.find((one) => one.id === component)?.keptWith;
    return kept ?? id;
  }

  /** Whether another model that is here, or is fetched, has the same files of a part. */
  isSharedInUse(component: ComponentId): boolean {
    return this.sharing(component).some(
      (other) =>
        other.wanted.size > 0 ||
        other.elsewhere ||
        // A shared part exists for both models: a part that only the other model has shows that the other model is
        // installed.
        other.stored.some((one) => other.homeOf(one.component) !== this.homeOf(one.component)),
    );
  }

  /** Whether another model waits for the rest of a part that both have: then that model goes on with it, or ends it. */
  isWantedByOther(component: ComponentId): boolean {
    return this.sharing(component).some(({ wanted }) => wanted.has(component));
  }

  /** Received bytes, from which the shown rate is computed. Converted and stored bytes are fewer. */
  received(component: ComponentId, bytes: number): void {
    this.#fetched.add(component);
    this.rate.add(bytes);
    this.onChange();
  }

  dispatch(component: ComponentId, event: PartEvent): void {
    if (event.type === 'progress') {
      const gained = event.bytesDone - this.part(component).bytesDone;
      const { status } = this.part(component);
      const isCounted = status === 'downloading' && this.#fetched.has(component);
      if (gained > 0 && !isCounted) this.rate.add(gained);
    }
    this.#parts = this.#parts.map((part) =>
      part.component === component ? advancePart(part, event) : part,
    );
    this.onChange();
  }

  /** Reads what is on disk of each part that nothing happens to, and forgets other tabs. */
  async refresh(): Promise<void> {
    for (const { component } of this.#parts) await this.refreshPart(component);
    this.#elsewhere = null;
    this.onChange();
  }

  /** Shows how far another tab is; until {@link refresh}. */
  follow(progress: WorkProgress): void {
    this.#elsewhere = progress;
    this.onChange();
  }

  get elsewhere(): WorkProgress | null {
    return this.#elsewhere;
  }

  entry(): LibraryEntry<M> {
    const { manifest, origin, elsewhere } = this;
    const [parts, stored] = [this.#parts, this.#stored];
    const moves = parts.some(({ status }) => status === 'downloading' || status === 'verifying');
    const bytesPerSecond = moves ? this.rate.bytesPerSecond : 0;
    const precision = origin === 'bundled' ? manifest.precision : this.precision;
    const ready = this.needed.every((one) => stored.some(({ component }) => component === one));
    const entry = { manifest, origin, ready, precision, parts, stored, elsewhere, bytesPerSecond };
    const hidden = this.listed.hidden === true && { hidden: true as const };
    const chosen = this.adapters && { adapters: this.adapters };
    const kept = stored.map(({ component }) => component).filter((one) => this.isSharedInUse(one));
    return { ...entry, ...hidden, ...chosen, ...(kept.length > 0 && { shared: kept }) };
  }

  /** Reads what is on disk of one part. */
  async refreshPart(component: ComponentId): Promise<void> {
    const folder = this.folder.folder(component);
    const stored = await readStoredComponent(folder);
    const others = this.#stored.filter((one) => one.component !== component);
    this.#stored = stored ? [...others, stored] : others;
    const before = this.part(component);
    const { status, bytesTotal, pausedBy, error } = before;
    // A pause by the user and a failure stay visible.
    const keepsStatus = (status === 'paused' && pausedBy !== 'interrupted') || error !== undefined;
    if (stored && status === 'complete') return this.onChange();
    const progress = stored ? null : await installProgress(folder);
    if (keepsStatus && !stored) {
      const { bytesDone = before.bytesDone, bytesStored = before.bytesStored } = progress ?? {};
      return this.#replace({ ...before, bytesDone, bytesStored });
    }
    let part = absentPart(component, bytesTotal);
    if (stored) {
      const bytes = stored.sources.reduce((sum, source) => sum + source.bytes, 0);
      part = advancePart(part, { type: 'completed', bytes, bytesStored: stored.bytesStored });
    } else {
      // Half of a shared part is of the models that want it, else of the one in whose folder it lies.
      const isHome = this.homeOf(component) === this.manifest.id;
      const begun =
        progress && progress.bytesDone > 0 && isHome && !this.isWantedByOther(component);
      if (begun || this.wanted.has(component)) {
        const size = progress?.sources.reduce((sum, source) => sum + source.size, 0);
        part = advancePart(part, {
          type: 'interrupted',
          bytesDone: progress?.bytesDone ?? 0,
          bytesStored: progress?.bytesStored ?? 0,
          bytesTotal: size ?? this.wanted.get(component) ?? bytesTotal,
        });
      }
    }
    this.#replace(part);
  }

  #replace(part: PartState): void {
    const { component } = part;
    this.#parts = this.#parts.map((one) => (one.component === component ? part : one));
    this.onChange();
  }
}

/** The parts of a model: those it needs and those that are fetched with it. */
function componentsOf(manifest: ToolManifest, needed: readonly ComponentId[]): ComponentId[] {
  const fetched = manifest.sources.filter(({ optional }) => !optional);
  const sourced = new Set(fetched.map(({ component }) => component));
  const isTool = manifest.components.length === 0;
  const all = isTool ? needed : componentIdsOf(manifest);
  return all.filter((component) => needed.includes(component) || sourced.has(component));
}

const windowMs = 5000;
/** For fewer bytes the rate is told only after half of the window. */
const firstBytes = 2 ** 20;

/** Bytes per second over the last few seconds. */
export class Rate {
  #samples: { at: number; bytes: number }[] = [];

  constructor(readonly now: () => number = () => performance.now()) {}

  add(bytes: number): void {
    this.#samples.push({ at: this.now(), bytes });
    this.#forget();
  }

  /** 0 while nothing comes, and as long as too little has come to tell. */
  get bytesPerSecond(): number {
    this.#forget();
    const first = this.#samples[0];
    if (!first) return 0;
    const bytes = this.#samples.reduce((sum, sample) => sum + sample.bytes, 0);
    const ms = this.now() - first.at;
    // A first small file says nothing about the speed: "about 3011 h left".
    if (bytes < firstBytes && ms < windowMs / 2) return 0;
    return bytes / (Math.max(1000, ms) / 1000);
  }

  #forget(): void {
    const oldest = this.now() - windowMs;
    while ((this.#samples[0]?.at ?? oldest) < oldest) this.#samples.shift();
  }
}
