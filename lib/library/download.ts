import {
  type ComponentId,
  isFaster,
  KinoraError,
  type PauseReason,
  type Precision,
  type StoredComponent,
  toKinoraError,
} from '../contract';
import { type CheckedPart, isConverted, type ModelPlan } from '../pipeline/installation';
import { neededPart } from '../weights/formats/located';
import type { ByteSource } from '../weights/formats/source';
import type { HubClient } from '../weights/hub';
import {
  type InstallProgress,
  installComponent,
  installFiles,
  installProgress,
  modelFolderOf,
  modelLock,
  startingOver,
} from '../weights/store';
import { checkPlainFiles } from './add-tool';
import type { HashThread, LibraryEnvironment } from './environment';
import { isLocal, type LocalFiles, localSource } from './local-files';
import type { ManagedModel } from './managed-model';
import { folderOfFiles, isWithheld, type OpenedFile, openFiles, openHeaders } from './sources';
import { dropUnfinished } from './upkeep';

const firstWaitMs = 15_000;
const longestWaitMs = 300_000;

/** A part whose header was read and checked. */
interface OpenedPart {
  readonly files: readonly OpenedFile[];
  readonly sources: readonly ByteSource[];
  /** What becomes of its tensors; absent where its files are stored as they are. */
  readonly checked?: CheckedPart;
}

/** The download and conversion of one model in this tab, from its first part to its last. */
export class Download {
  readonly #controllers = new Map<ComponentId, AbortController>();
  readonly #opened = new Map<ComponentId, OpenedPart>();
  /** The part that is worked on now, and the end of that work. */
  #working: { readonly component: ComponentId; readonly end: Promise<unknown> } | undefined;
  readonly #cancels: Promise<void>[] = [];
  #over = false;
  #plan: ModelPlan | undefined;
  #hashing: HashThread | undefined;

  constructor(
    readonly environment: LibraryEnvironment,
    readonly client: HubClient,
    readonly model: ManagedModel,
    readonly precision: Precision,
    readonly local: LocalFiles,
    /** Called before anything is written for good, or deleted: every header is checked by then. */
    readonly onBegin: () => Promise<void>,
  ) {}

  /**
   * Works until nothing waits any more: everything is complete, paused, cancelled or failed.
   *
   * @throws KinoraError the first failure
   */
  async run(): Promise<void> {
    const failures: unknown[] = [];
    try {
      await this.#configure();
      if (!this.#plan && this.model.installationOf) return;
      // Every part's header before any part's weights: a wrong file is refused before gigabytes are fetched.
      for (let next = this.#next(true); next; next = this.#next(true)) {
        const component = next;
        const look = this.#heal(component, (signal) => this.#look(component, signal));
        await look.catch((thrown: unknown) => {
          if (!isFaster(this.model.manifest, component) && !isWithheld(thrown)) throw thrown;
          failures.push(thrown);
        });
      }
      await this.#replaceConfiguration();
      for (let next = this.#next(); next; next = this.#next()) {
        const component = next;
        const install = this.#heal(component, (signal) => this.#install(component, signal));
        await install.catch((thrown: unknown) => failures.push(thrown));
      }
    } catch (thrown) {
      failures.push(thrown);
    } finally {
      this.#over = true;
      this.#hashing?.close();
      this.#hashing = undefined;
      await Promise.allSettled(this.#cancels);
      await this.model.refresh();
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Whether it still takes up what is queued. */
  get active(): boolean {
    return !this.#over;
  }

  queue(component: ComponentId): void {
    // Sources that were opened before are bound to the earlier signal.
    this.#opened.delete(component);
    this.#controllers.set(component, new AbortController());
    this.model.dispatch(component, { type: 'queued' });
  }

  pause(component: ComponentId, by: PauseReason = 'user'): void {
    this.model.dispatch(component, { type: 'paused', by });
    this.#controllers.get(component)?.abort();
  }

  /** Ends a part; what is not complete of it is deleted once nothing writes to it any more. */
  cancel(component: ComponentId): Promise<void> {
    const controller = this.#controllers.get(component);
    const end = this.#working?.component === component ? this.#working.end : null;
    this.model.dispatch(component, { type: 'removed' });
    controller?.abort();
    const cancelled = Promise.resolve(end).then(async () => {
      // It may have been asked for again while its end was waited for.
      if (this.#controllers.get(component) !== controller) return;
      await dropUnfinished(this.model, component, this.environment);
      await this.model.refreshPart(component);
    });
    this.#cancels.push(cancelled);
    return cancelled;
  }

  /** The next part that waits; with `unopened`, of those whose header was not looked at. */
  #next(unopened = false): ComponentId | undefined {
    for (const { component, status } of this.model.parts) {
      if (component === 'configuration' || status !== 'waiting') continue;
      if (!unopened || !this.#opened.has(component)) return component;
    }
    return undefined;
  }

  async #configure(): Promise<void> {
    const component = 'configuration';
    const folder = this.model.folder.folder(component);
    const installation = this.model.installationOf?.();
    if (!installation) return;
    if (this.model.part(component).status === 'waiting') {
      const picked = this.local.get(component);
      if (picked && this.model.stored.some((stored) => stored.component === component)) {
        this.#plan = await installation.plan(folderOfFiles(picked, localSource));
        return;
      }
      await this.#installConfiguration();
    }
    if (this.model.part(component).status === 'complete') {
      this.#plan = await installation.plan(modelFolderOf(folder));
      return;
    }
    // Without the configuration no file can be checked, so none is fetched.
    for (const { component: other, status } of this.model.parts) {
      if (status === 'waiting') this.pause(other);
    }
  }

  /** Puts a local configuration in the place of the one that is there, now that every part fits it. */
  async #replaceConfiguration(): Promise<void> {
    if (this.model.part('configuration').status !== 'waiting') return;
    await this.onBegin();
    await this.#installConfiguration();
  }

  async #installConfiguration(): Promise<void> {
    const component = 'configuration';
    await this.#heal(component, async (signal) => {
      this.model.dispatch(component, { type: 'started' });
      await this.#keepFiles(component, await openFiles(this, component, signal), signal);
    });
  }

  /** Stores files as they are. */
  async #keepFiles(
    component: ComponentId,
    files: readonly OpenedFile[],
    signal: AbortSignal,
  ): Promise<void> {
    const folder = this.model.folder.folder(component);
    const onProgress = this.#progress(component);
    const installed = await installFiles({ folder, component, files, signal, onProgress });
    this.#complete(component, installed.sources, installed.bytesStored);
  }

  /** Opens the files of a part, and reads and checks their headers. */
  async #look(component: ComponentId, signal: AbortSignal): Promise<OpenedPart> {
    const known = this.#opened.get(component);
    if (known) return known;
    const files = await openFiles(this, component, signal);
    const part = isConverted(component)
      ? await this.#check(component, files)
      : await this.#checkPlain(component, files);
    signal.throwIfAborted();
    this.#opened.set(component, part);
    const bytesTotal = part.sources.reduce((sum, { size }) => sum + size, 0);
    this.model.dispatch(component, { type: 'sized', bytesTotal });
    return part;
  }

  async #checkPlain(component: ComponentId, files: readonly OpenedFile[]): Promise<OpenedPart> {
    await checkPlainFiles(component, files, this.environment);
    return { files, sources: files.map(({ source }) => source) };
  }

  /** Checks every tensor of a part whose weights are converted. */
  async #check(component: ComponentId, files: readonly OpenedFile[]): Promise<OpenedPart> {
    const plan = this.#plan;
    if (!plan) throw new KinoraError('MODEL_FILE_MISSING', 'The configuration is missing.');
    const { weights, headers } = await openHeaders(files.map(({ source }) => source));
    const checked = plan.check(component, headers, this.precision);
    const [file] = weights;
    const needed = checked.needsPart && file ? neededPart(file, checked.tensors) : null;
    if (!needed) return { files, sources: weights, checked };
    return { files, sources: [needed.source], checked: { ...checked, tensors: needed.tensors } };
  }

  async #install(component: ComponentId, signal: AbortSignal): Promise<void> {
    const home = this.model.homeOf(component);
    const work = () => this.#store(component, signal);
    if (!isConverted(component) || home === this.model.manifest.id) return work();
    if (await this.environment.tryLock(modelLock(home), work)) return;
    const sentence = `${home} has the same files, and is in use: another download, or a video, has to end first.`;
    throw new KinoraError('MODEL_BUSY', sentence);
  }

  async #store(component: ComponentId, signal: AbortSignal): Promise<void> {
    const { files, sources, checked } = await this.#look(component, signal);
    // A change between hub and local file was asked for: it needs no notice.
    const begun = checked && (await installProgress(this.model.folder.folder(component)));
    const otherOrigin = begun?.sources.some(isLocal) === !sources.some(isLocal);
    signal.throwIfAborted();
    await this.onBegin();
    this.model.dispatch(component, { type: 'started' });
    if (!checked) return this.#keepFiles(component, files, signal);
    await this.#convert(component, { ...checked, sources }, signal, otherOrigin);
  }

  async #convert(
    component: ComponentId,
    part: CheckedPart & Pick<OpenedPart, 'sources'>,
    signal: AbortSignal,
    otherOrigin: boolean,
  ): Promise<void> {
    const { model, precision, environment } = this;
    // Parts are installed one after the other, so one thread serves all.
    this.#hashing ??= environment.startHash?.();
    const { bytesStored, sources } = await installComponent({
      ...part,
      ...(this.#hashing && { hash: this.#hashing.hash }),
      ...(environment.unitLimit !== undefined && { limit: environment.unitLimit }),
      folder: model.folder.folder(component),
      component,
      precision,
      signal,
      onProgress: this.#progress(component),
      onRestart: (notice) => {
        if (!otherOrigin) model.dispatch(component, { type: 'restarted', notice });
      },
    });
    this.#complete(component, sources, bytesStored);
  }

  #progress(component: ComponentId) {
    return (progress: InstallProgress) =>
      this.model.dispatch(component, { type: 'progress', ...progress });
  }

  #complete(
    component: ComponentId,
    sources: StoredComponent['sources'],
    bytesStored: number,
  ): void {
    const bytes = sources.reduce((sum, source) => sum + source.bytes, 0);
    this.model.dispatch(component, { type: 'completed', bytes, bytesStored });
  }

  /** Does a part's work until it is done, ended from outside, or hopeless. */
  async #heal(component: ComponentId, work: (signal: AbortSignal) => Promise<unknown>) {
    const end = this.#healed(component, work);
    this.#working = { component, end: end.catch(() => undefined) };
    try {
      await end;
    } finally {
      this.#working = undefined;
    }
  }

  async #healed(component: ComponentId, work: (signal: AbortSignal) => Promise<unknown>) {
    for (let waitMs = firstWaitMs; ; waitMs = Math.min(longestWaitMs, waitMs * 2)) {
      const controller = this.#controllers.get(component);
      if (!controller) throw new TypeError(`${component} was not queued`);
      const { signal } = controller;
      const before = this.model.part(component).bytesDone;
      try {
        await startingOver(
          () => work(signal),
          signal,
          ({ message }) => {
            this.#opened.delete(component);
            const notice = `${message} It starts over.`;
            this.model.dispatch(component, { type: 'restarted', notice });
          },
        );
        return;
      } catch (thrown) {
        if (signal.aborted) return;
        // All sources are opened anew: a file may have moved.
        this.#opened.delete(component);
        const error = toKinoraError(thrown);
        if (error.code === 'STORAGE_FULL') return this.#storageFull(component, error);
        if (!isTransient(error)) {
          this.model.dispatch(component, { type: 'failed', error: error.toRecord() });
          throw error;
        }
        if (this.model.part(component).bytesDone > before) waitMs = firstWaitMs;
        this.model.dispatch(component, { type: 'paused', by: 'network', error: error.toRecord() });
        await this.environment.online(waitMs, signal);
        if (signal.aborted) return;
        this.model.dispatch(component, { type: 'queued' });
      }
    }
  }

  /** One part found the storage full, so no other can go on either. */
  #storageFull(component: ComponentId, thrown: KinoraError): void {
    const error = thrown.toRecord();
    this.model.dispatch(component, { type: 'paused', by: 'storage', error });
    for (const part of this.model.parts) {
      if (part.status === 'waiting') this.pause(part.component, 'storage');
    }
  }
}

/** Whether a failure is one of the connection: it may end by itself, so that another attempt is worth making. */
export function isTransient({ code }: KinoraError): boolean {
  return code === 'HUB_UNREACHABLE' || code === 'HUB_BUSY';
}
