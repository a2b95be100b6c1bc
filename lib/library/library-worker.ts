import * as Comlink from 'comlink';
import { appUrl, exposeWorker, KinoraError, siteStorage } from '../contract';
import type { ModelInstallations } from '../pipeline/installation';
import { fetchManifest } from '../pipeline/open';
import { checkCheckerFiles } from '../safety';
import { opfsFolder, type SourceHash, toolFolder } from '../weights/store';
import { modelFolder } from '../weights/store/opfs';
import type { HashThread, LibraryChannel, LibraryMessage, ListedModel } from './environment';
import { Library } from './library';
import { loraFolder } from './loras';
import { termsFolder } from './terms';

/**
 * Chromium reports at most 10 GiB of free storage, however large the disk is. The real model needs
 * more than that.
 */
const mostReportedFree = 10 * 2 ** 30;

/** An entry of `models/index.json`. The first model is the one with which pages and commands start. */
interface ListedId {
  readonly id: string;
  /** Material of tests, which no list shows. */
  readonly hidden?: boolean;
}

/** The models that come with Kinora: `models/index.json` and a manifest for each id. */
async function listedModels(): Promise<readonly ListedModel[]> {
  const base = appUrl('/models/');
  const url = new URL('index.json', base);
  const response = await fetch(url);
  if (!response.ok) {
    const sentence = `${url.pathname} is missing (HTTP ${response.status}).`;
    throw new KinoraError('MODEL_FILE_MISSING', sentence);
  }
  const entries = (await response.json()) as readonly ListedId[];
  return Promise.all(
    entries.map(async ({ id, hidden = false }) => {
      const { manifest, folder } = await fetchManifest(id, base);
      return { manifest, base: folder, hidden };
    }),
  );
}

function otherTabs(): LibraryChannel {
  const channel = new BroadcastChannel('kinora:library');
  return {
    post: (message) => channel.postMessage(message),
    listen: (listener) =>
      channel.addEventListener('message', ({ data }: MessageEvent<LibraryMessage>) =>
        listener(data),
      ),
  };
}

/** Resolves with the next connection, after the time, or when the wait is ended. */
function online(afterMs: number, signal: AbortSignal): Promise<void> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(afterMs)]);
  return new Promise((resolve) => {
    self.addEventListener('online', () => resolve(), { once: true, signal: over });
    over.addEventListener('abort', () => resolve());
    if (over.aborted) resolve();
  });
}

/** The running SHA-256 of a download, in a thread of its own. */
function startHash(thread: Worker): HashThread {
  const remote = Comlink.wrap<SourceHash>(thread);
  // A thread that does not start never answers: without this, calls would wait forever.
  const failure = new Promise<never>((_, reject) => {
    thread.addEventListener('error', ({ message }) => {
      const sentence = `The thread for checksums failed: ${message || 'it could not be loaded'}.`;
      reject(new KinoraError('INTERNAL', sentence));
    });
  });
  // Each call that races it reports the failure.
  failure.catch(() => undefined);
  const or = <T>(answer: Promise<T>) => Promise.race([answer, failure]);
  return {
    hash: {
      start: () => or(remote.start()),
      resume: (state) => or(remote.resume(state)),
      update: (bytes) => {
        const own = bytes.slice(); // Moved to the thread, which is cheaper than a structured clone.
        return or(remote.update(Comlink.transfer(own, [own.buffer])));
      },
      state: () => or(remote.state()),
      digest: () => or(remote.digest()),
    },
    close: () => thread.terminate(),
  };
}

/** The dependencies of the library in a browser. */
export interface LibraryParts {
  readonly families: ModelInstallations;
  /** Starts a thread that answers as `sourceHashService`. */
  readonly startHashThread: () => Worker;
}

/** Starts the library of this browser in this worker; the page speaks to it over Comlink. */
export function startLibrary({ families, startHashThread }: LibraryParts): void {
  exposeWorker(
    new Library({
      families,
      checkSafetyChecker: checkCheckerFiles,
      models: opfsFolder(modelFolder),
      loras: opfsFolder(loraFolder),
      tools: opfsFolder(toolFolder),
      terms: opfsFolder(termsFolder),
      listed: listedModels,
      async storage() {
        await siteStorage();
        const { usage = 0, quota = 0 } = await navigator.storage.estimate();
        const persistent = await navigator.storage.persisted();
        const atLeast = quota - usage === mostReportedFree;
        return { usage, quota, persistent, ...(atLeast && { atLeast }) };
      },
      tryLock: (name, work) =>
        navigator.locks.request(name, { ifAvailable: true }, async (lock) =>
          lock ? { value: await work() } : null,
        ),
      withLock: (name, work) => navigator.locks.request(name, work),
      startHash: () => startHash(startHashThread()),
      whenFree: (name) => navigator.locks.request(name, { mode: 'shared' }, () => undefined),
      channel: otherTabs(),
      online,
    }),
  );
}
