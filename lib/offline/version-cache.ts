import { KinoraError } from '../contract/errors';
import {
  type AppFile,
  type AppVersion,
  type CachedWhen,
  cachedPath,
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

/**
 * The files of one build in a cache of their own. A build is installed whole or not at all, and pages
 * get the files of one build only.
 */
export class VersionCache {
  readonly #build: string;
  #list: Promise<ReadonlyMap<string, AppFile>> | null = null;

  /** @param build id of the build, as in its addresses */
  constructor(build: string) {
    this.#build = build;
  }

  /**
   * Fetches every file of the build that has to be there, and copies those that an installed build has
   * with the same content.
   *
   * @throws Error if a file cannot be fetched, or the server has another build by now; nothing stays then
   */
  async install(): Promise<void> {
    const name = prefix + this.#build;
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
          await cache.put(path, kept ?? (await fetchWhole(file)));
        }
      };
      await Promise.all(Array.from({ length: lanes }, work));
      // The pages came from this build if the server still has it.
      await this.#fetchList();
      await cache.put(listKey, Response.json(version));
    } catch (error) {
      await caches.delete(name);
      throw error;
    }
  }

  /** Deletes every other build. Call it when no page of another build is open. */
  async deleteOthers(): Promise<void> {
    for (const name of await storedBuilds()) {
      if (name !== prefix + this.#build) await caches.delete(name);
    }
  }

  /** Answers a request for a file of the build from the cache, and every other one from the network. */
  async answer(request: Request): Promise<Response> {
    const path = cachedPath(request, location.origin);
    this.#list ??= this.#readList();
    const file = path === null ? undefined : (await this.#list).get(path);
    const cache = await caches.open(prefix + this.#build);
    const cached = file && path && (await cache.match(path, { ignoreVary: true }));
    // A new response has no address of its own: a worker takes the request's, with what its query says.
    if (cached) return new Response(cached.body, cached);
    let response: Response;
    try {
      response = await fetch(request);
    } catch (error) {
      const page = request.mode === 'navigate' && (await cache.match(offlinePath));
      if (page) return page;
      throw error;
    }
    // A part (206) cannot be stored.
    if (path && file?.when === 'used' && response.status === 200) {
      await cache.put(path, response.clone()).catch(() => {});
    }
    return response;
  }

  async #fetchList(): Promise<AppVersion> {
    const response = await fetch(versionPath(this.#build), { cache: 'no-store' });
    if (!response.ok) throw new Error(`The server has no build ${this.#build}.`);
    return response.json();
  }

  async #readList(): Promise<ReadonlyMap<string, AppFile>> {
    const cache = await caches.open(prefix + this.#build);
    const list = await cache.match(listKey);
    const { files }: AppVersion = list ? await list.json() : { files: [] };
    return new Map(files.map((file) => [plainPath(file.path), file]));
  }

  /** What the other builds have in their caches. */
  async #earlier(): Promise<
    ReadonlyMap<string, { hash: string; read: () => Promise<Response | undefined> }>
  > {
    const found = new Map<string, { hash: string; read: () => Promise<Response | undefined> }>();
    for (const name of await storedBuilds()) {
      if (name === prefix + this.#build) continue;
      const cache = await caches.open(name);
      for (const { hash, path } of await storedFiles(cache)) {
        found.set(path, { hash, read: () => cache.match(path, { ignoreVary: true }) });
      }
    }
    return found;
  }
}

/** The files of a build that are in its cache, by their paths there. */
async function storedFiles(cache: Cache): Promise<readonly AppFile[]> {
  const list = await cache.match(listKey);
  if (!list) return [];
  const { files }: AppVersion = await list.json();
  const stored = new Set((await cache.keys()).map(({ url }) => url));
  return files
    .map((file) => ({ ...file, path: plainPath(file.path) }))
    .filter(({ path }) => stored.has(new URL(path, location.origin).href));
}

/** How much the stored files of the app take in this browser, in bytes; 0 where none are stored. */
export async function storedAppBytes(): Promise<number> {
  let bytes = 0;
  for (const name of await storedBuilds()) {
    for (const file of await storedFiles(await caches.open(name))) bytes += file.bytes;
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
  try {
    // Any answer will do: the list of files is never taken from a cache.
    const build = builds[0]?.slice(prefix.length) ?? '';
    await fetch(versionPath(build), { cache: 'no-store' });
  } catch (cause) {
    throw new KinoraError('SERVER_UNREACHABLE', undefined, {
      cause,
      remedy: 'The files stay: without the server they could not be stored again.',
    });
  }
  await (await navigator.serviceWorker.getRegistration())?.unregister();
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

async function fetchWhole(file: AppFile): Promise<Response> {
  const response = await fetch(requestOf(file));
  if (response.status !== 200 || response.redirected) {
    throw new Error(`${file.path} was answered with ${response.status}.`);
  }
  return response;
}
