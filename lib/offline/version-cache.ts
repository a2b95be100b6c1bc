import { KinoraError } from '../contract';
import {
  type AppFile,
  type AppVersion,
  type CachedWhen,
  cachedPath,
  hashOf,
  offlinePath,
  plainPath,
  requestOf,
  versionPath,
} from './version';

const prefix = 'kinora-app-';
/** Key of the list of files in its own cache. */
const listKey = '/files.json';
/** Requests at the same time while a version is installed. */
const lanes = 4;

/** A request that the service worker answers, as its event has it. */
interface Question {
  readonly request: Request;
  /** Keeps the service worker running. */
  waitUntil(work: Promise<void>): void;
}

/**
 * The files of one build in a cache of their own. A build is installed whole or not at all, and pages
 * get the files of one build only.
 */
export class VersionCache {
  readonly #build: string;
  readonly #scope: string;
  readonly #name: string;
  #list: Promise<ReadonlyMap<string, AppFile> | null> | null = null;
  #restoring: Promise<void> | null = null;

  /**
   * @param build id of the build, as in its addresses
   * @param scope address of the folder in which the app lies, with a slash at its end
   */
  constructor(build: string, scope: string) {
    this.#build = build;
    this.#scope = scope;
    this.#name = prefix + build;
  }

  /**
   * Fetches every file of the build that has to be there, and copies those that an installed build has
   * with the same content. Each is compared with its hash.
   *
   * @throws Error if a file cannot be fetched, or the server has another build by now; nothing stays then
   */
  async install(): Promise<void> {
    const name = this.#name;
    try {
      const version = await this.#fetchList();
      const cache = await caches.open(name);
      const earlier = await this.#earlier();
      const files = version.files.filter(
        ({ path, when }) => isInstalled(when) || (when === 'used' && earlier.has(plainPath(path))),
      );
      const waiting = files.values();
      const work = async () => {
        for (const file of waiting) {
          const path = plainPath(file.path);
          const before = earlier.get(path);
          const kept = before?.hash === file.hash ? await before.read() : undefined;
          const right = kept && (await hasContent(kept, file)) ? kept : null;
          await cache.put(path, right ?? (await fetchWhole(file, this.#scope)));
        }
      };
      await Promise.all(Array.from({ length: lanes }, work));
      await cache.put(listKey, Response.json(version));
    } catch (error) {
      await caches.delete(name);
      throw error;
    }
  }

  /** Deletes every other build. Call it when no page of another build is open. */
  async deleteOthers(): Promise<void> {
    for (const name of await storedBuilds()) {
      if (name !== this.#name) await caches.delete(name);
    }
  }

  /**
   * Answers a request for a file of the build from the cache, and every other one from the network. A build
   * that the browser has deleted from the cache is installed again meanwhile.
   */
  async answer(event: Question): Promise<Response> {
    const { request } = event;
    // A browser whose cache is damaged answers with errors.
    const isVisit = request.mode === 'navigate';
    // A visit looks whether the list is still there.
    if (isVisit) this.#list = null;
    // Undefined where the browser cannot read its cache: that may pass.
    const stored = await this.#open().catch(() => undefined);
    const path = cachedPath(request, this.#scope);
    const file = path === null ? undefined : stored?.files.get(path);
    if (stored && file && path) {
      const cached = await stored.cache.match(path, { ignoreVary: true });
      // A part (206) cannot be stored.
      const isPart = request.headers.has('Range');
      const answer = cached ?? (isPart ? null : await this.#fetchInto(stored.cache, file, path));
      // A new response has no address of its own: a worker takes the request's, with what its query says.
      if (answer) return new Response(answer.body, answer);
    }
    if (stored === null && isVisit) event.waitUntil(this.#restore());
    try {
      return await fetch(request);
    } catch (error) {
      const page = isVisit && (await stored?.cache.match(offlinePath));
      if (page) return page;
      throw error;
    }
  }

  /** Fetches and stores a file that is not in the cache; null where the server has another one or none. */
  async #fetchInto(cache: Cache, file: AppFile, path: string): Promise<Response | null> {
    try {
      const response = await fetchWhole(file, this.#scope);
      // Without space the file is used and not kept.
      await cache.put(path, response.clone()).catch(() => {});
      return response;
    } catch {
      // Offline: the caller has another answer.
      return null;
    }
  }

  /** The cache with its list; null where the browser has deleted either. */
  async #open(): Promise<{ cache: Cache; files: ReadonlyMap<string, AppFile> } | null> {
    if (!(await caches.has(this.#name))) {
      this.#list = null;
      return null;
    }
    const cache = await caches.open(this.#name);
    this.#list ??= readList(cache);
    const files = await this.#list;
    return files && { cache, files };
  }

  /** Installs the build again. Where that fails, the next visit tries it again. */
  #restore(): Promise<void> {
    this.#restoring ??= this.install()
      .catch(() => {})
      .finally(() => {
        this.#restoring = null;
      });
    return this.#restoring;
  }

  async #fetchList(): Promise<AppVersion> {
    const address = new URL(versionPath(this.#build).slice(1), this.#scope);
    const response = await fetch(address, { cache: 'no-store' });
    if (!response.ok) throw new Error(`The server has no build ${this.#build}.`);
    return response.json();
  }

  /** The files in the caches of other builds. */
  async #earlier(): Promise<
    ReadonlyMap<string, { hash: string; read: () => Promise<Response | undefined> }>
  > {
    const files = new Map<string, { hash: string; read: () => Promise<Response | undefined> }>();
    for (const name of await storedBuilds()) {
      if (name === this.#name) continue;
      const cache = await caches.open(name);
      for (const [path, { hash }] of await storedFiles(cache)) {
        files.set(path, { hash, read: () => cache.match(path, { ignoreVary: true }) });
      }
    }
    return files;
  }
}

/** The files of a build by their paths in its cache; null where the cache has no list. */
async function readList(cache: Cache): Promise<ReadonlyMap<string, AppFile> | null> {
  const list = await cache.match(listKey);
  if (!list) return null;
  const { files }: AppVersion = await list.json();
  return new Map(files.map((file) => [plainPath(file.path), file]));
}

/** The files of a build that are in its cache, by their paths there. */
async function storedFiles(cache: Cache): Promise<readonly (readonly [string, AppFile])[]> {
  const files = [...((await readList(cache)) ?? [])];
  const stored = new Set((await cache.keys()).map(({ url }) => url));
  return files.filter(([path]) => stored.has(new URL(path, location.origin).href));
}

/** How much the stored files of the app take in this browser, in bytes; 0 where none are stored. */
export async function storedAppBytes(): Promise<number> {
  let bytes = 0;
  for (const name of await storedBuilds()) {
    for (const [, file] of await storedFiles(await caches.open(name))) bytes += file.bytes;
  }
  return bytes;
}

/**
 * Deletes the stored files of the app and its service worker; the next visit stores them again.
 *
 * @throws KinoraError `SERVER_UNREACHABLE` where they could not be fetched again: they stay then
 */
export async function deleteStoredApp(): Promise<void> {
  const builds = await storedBuilds();
  const registration = await navigator.serviceWorker.getRegistration();
  try {
    // Any answer will do: the list of files is never taken from a cache.
    const build = builds[0]?.slice(prefix.length) ?? '';
    const list = new URL(versionPath(build).slice(1), registration?.scope ?? location.origin);
    await fetch(list, { cache: 'no-store' });
  } catch (cause) {
    throw new KinoraError('SERVER_UNREACHABLE', undefined, {
      cause,
      remedy: 'The files stay: without the server they could not be stored again.',
    });
  }
  await registration?.unregister();
  for (const name of builds) await caches.delete(name);
}

/** Names of the caches with the app's files. */
async function storedBuilds(): Promise<string[]> {
  // Browsers have caches at https and localhost only.
  if (!('caches' in globalThis)) return [];
  return (await caches.keys()).filter((name) => name.startsWith(prefix));
}

/** Whether this browser needs a file from the start. ONNX Runtime has a variant for each kind of browser. */
function isInstalled(when: CachedWhen): boolean {
  const variant = 'Suspending' in WebAssembly ? 'jspi' : 'asyncify';
  return when === 'installed' || when === variant;
}

/**
 * Fetches a file with the content of its build. A cache on the way may have the one of another build: then
 * it is asked for once more, past caches.
 */
async function fetchWhole(file: AppFile, scope: string): Promise<Response> {
  for (const pastCaches of [false, true]) {
    const response = await fetch(requestOf(file, scope, pastCaches));
    const whole = response.status === 200 && !response.redirected;
    if (whole && (await hasContent(response, file))) return response;
  }
  throw new Error(`The server does not have ${file.path} of this build.`);
}

async function hasContent(response: Response, { hash }: AppFile): Promise<boolean> {
  return (await hashOf(await response.clone().arrayBuffer())) === hash;
}
