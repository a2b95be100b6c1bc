/** Libraries over a disk and a hub on this machine: what the tests of the library share. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import {
  type LibrarySnapshot,
  type LocalFile,
  type ModelEntry,
  type PartState,
  parseManifest,
  type StorageReport,
} from '../../contract';
import { modelFamilies } from '../../models';
import {
  type GoldenWeights,
  goldenId,
  goldenPath,
  goldenRepository,
  publishGoldenModel,
} from '../../models/wan/testing/golden-model';
import { checkCheckerFiles } from '../../safety';
import type { StoreFolder } from '../../weights/store';
import { diskStore } from '../../weights/store/testing/disk';
import { diskFolder, goldens } from '../../weights/testing/files';
import { type LocalHub, startHub } from '../../weights/testing/hub/server';
import type { LibraryEnvironment, LibraryMessage, ListedModel } from '../environment';
import { Library } from '../library';
import { acceptTerms } from '../terms';

const publicModels = fileURLToPath(new URL('../../../public/models/', import.meta.url));

/** The hub and the disk of one test. */
export class LibraryTest {
  /** Locks and listeners of all tabs. */
  readonly held = new Set<string>();
  #released: (() => void)[] = [];
  readonly #turns = new Map<string, Promise<unknown>>();
  #tabs: ((message: LibraryMessage) => void)[] = [];

  constructor(
    readonly hub: LocalHub,
    readonly root: string,
  ) {}

  get terms(): StoreFolder {
    return diskStore(`${this.root}/terms`);
  }

  /** What is stored of a model, or of one of its components. */
  folder(inside: string): StoreFolder {
    return diskStore(`${this.root}/models/${inside}`);
  }

  /** The folder of the LoRAs. */
  get loras(): StoreFolder {
    return diskStore(`${this.root}/loras`);
  }

  /** A tab: its own library over the same disk. */
  openTab(overrides: Partial<LibraryEnvironment> = {}): Library {
    let receive: ((message: LibraryMessage) => void) | undefined;
    const { held } = this;
    return new Library({
      families: modelFamilies,
      checkSafetyChecker: checkCheckerFiles,
      models: diskStore(`${this.root}/models`),
      loras: this.loras,
      tools: diskStore(`${this.root}/tools`),
      terms: this.terms,
      listed: async () => [await listed('tiny'), await listed('wan2.2-ti2v-5b')],
      storage: async (): Promise<StorageReport> => ({ usage: 0, quota: 2 ** 40, persistent: true }),
      tryLock: (name, work) => this.tryLock(name, work),
      withLock: (name, work) => {
        const turn = (this.#turns.get(name) ?? Promise.resolve()).then(work);
        this.#turns.set(
          name,
          turn.catch(() => undefined),
        );
        return turn;
      },
      whenFree: (name) =>
        held.has(name) ? new Promise((resolve) => this.#released.push(resolve)) : Promise.resolve(),
      channel: {
        post: (message) => {
          for (const tab of this.#tabs) if (tab !== receive) queueMicrotask(() => tab(message));
        },
        listen: (listener) => {
          receive = listener;
          this.#tabs.push(listener);
        },
      },
      online: async () => undefined,
      // A stall is long: a machine that stands still for a while has lost no answer.
      hubOptions: {
        policy: { firstDelayMs: 1, longestDelayMs: 2, stallMs: 120_000, attempts: 4 },
      },
      defaultHub: this.hub.url,
      ...overrides,
    });
  }

  /** A tab to whose library the golden model was added. */
  async openModelTab(overrides: Partial<LibraryEnvironment> = {}): Promise<Library> {
    const library = this.openTab(overrides);
    await library.addModel({ address: goldenRepository });
    return library;
  }

  /** Runs `work` unless a tab has the lock. */
  readonly tryLock: LibraryEnvironment['tryLock'] = async (name, work) => {
    if (this.held.has(name)) return null;
    this.held.add(name);
    try {
      return { value: await work() };
    } finally {
      this.held.delete(name);
      for (const resolve of this.#released.splice(0)) resolve();
    }
  };

  served(component: string) {
    return this.hub.served(weightPath(component));
  }

  /** Slows the VAE down, so that there is a middle of its download. */
  slowVae(): void {
    this.hub.fail({
      fault: { kind: 'slow', pieceBytes: 16 * 1024, pauseMs: 60 },
      path: weightPath('vae'),
      host: 'storage',
      fromByte: 1,
      times: 100,
    });
  }
}

/** Resolves when a tab is in the middle of the VAE's download. */
export function untilVaeDownloads(library: Library): Promise<void> {
  return until(library, ({ models }) =>
    models.some(({ parts }) =>
      parts.some(({ component, status }) => component === 'vae' && status === 'downloading'),
    ),
  );
}

/** A model that comes with Kinora; with `dimensions`, its configuration is of another one. */
export async function listed(name: string, dimensions = publicModels + name): Promise<ListedModel> {
  const text = await readFile(`${publicModels}${name}.json`, 'utf8');
  return { manifest: parseManifest(JSON.parse(text)), base: diskFolder(dimensions) };
}

/** Starts a hub with the golden model for all tests of a file; gives what the present test has. */
export function libraryTests(): () => LibraryTest {
  let hub: LocalHub;
  let current: LibraryTest;
  beforeAll(async () => {
    hub = await startHub();
  });
  afterAll(() => hub.close());
  beforeEach(async () => {
    current = new LibraryTest(hub, await mkdtemp(path.join(tmpdir(), 'kinora-')));
    await publishGoldenModel(hub);
    await acceptTerms(current.terms);
  });
  afterEach(async () => {
    hub.heal();
    hub.forget();
    hub.repositories.gates.clear();
    await rm(current.root, { recursive: true, force: true });
  });
  return () => current;
}

/** Path of a component's weights in the golden repository. */
export function weightPath(component: string): string {
  return goldenPath(component as GoldenWeights);
}

export async function modelOf(library: Library, id = goldenId): Promise<ModelEntry> {
  const { models } = await library.snapshot();
  const entry = models.find(({ manifest }) => manifest.id === id);
  if (!entry) throw new Error(`There is no model ${id}.`);
  return entry;
}

export async function partOf(
  library: Library,
  component: string,
  id = goldenId,
): Promise<PartState> {
  const found = (await modelOf(library, id)).parts.find((one) => one.component === component);
  if (!found) throw new Error(`There is no part ${component}.`);
  return found;
}

/** Waits for a snapshot in which something is so. */
export async function until(
  library: Library,
  holds: (snapshot: LibrarySnapshot) => boolean,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    library
      .subscribe((snapshot) => {
        if (holds(snapshot)) resolve();
      })
      .catch(reject);
  });
}

/** A file of the goldens as someone picks it. */
export async function local(file: string, name = path.basename(file)): Promise<LocalFile> {
  const content = new Uint8Array(await readFile(goldens + file));
  return { path: name, file: new File([content], name) };
}
