import { sha256 } from '../contract';

/** When a file is put into the cache of a version. */
export type CachedWhen =
  /** With the version, before it is used at all. */
  | 'installed'
  /** With the version, where the browser runs this variant of ONNX Runtime. */
  | 'jspi'
  | 'asyncify'
  /** When it was fetched for the first time; from then on with each version. */
  | 'used';

/** One file of the app. */
export interface AppFile {
  /**
   * Path from `/` under which the server has it. With {@link routePayload} at its end it is not the page
   * itself but what Next's router fetches in the place of the page.
   */
  readonly path: string;
  /** First half of the content's SHA-256, in hex. */
  readonly hash: string;
  readonly bytes: number;
  readonly when: CachedWhen;
}

/** All files of one build. */
export interface AppVersion {
  readonly files: readonly AppFile[];
}

/** Where the service worker has the id of its build: `npm run build` writes it when the app is compiled. */
export const buildPlaceholder = '__KINORA_BUILD__';

/** Address of the list of a build's files. It carries the build, so that it never lists another one's. */
export function versionPath(build: string): string {
  return `/_next/static/${build}/files.json`;
}

/** Marks the path of what Next's router fetches in the place of a page. */
export const routePayload = '?rsc';

/** Headers of a request by Next's router. */
const routerHeader = 'RSC';
const prefetchHeader = 'Next-Router-Prefetch';
const segmentHeader = 'Next-Router-Segment-Prefetch';

/** The path in the cache: a page is the same with and without a slash at the end. */
export function plainPath(pathname: string): string {
  return pathname.length > 1 && pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
}

/**
 * The path of an address inside of the app, from `/`; null for one outside of it.
 *
 * @param scope address of the folder in which the app lies, with a slash at its end
 */
export function pathInside(address: string, scope: string): string | null {
  const { origin, pathname } = new URL(address);
  const base = new URL(scope);
  if (origin !== base.origin || !pathname.startsWith(base.pathname)) return null;
  return pathname.slice(base.pathname.length - 1);
}

/** The path in the cache of the answer to a request; null for a request that is never answered from it. */
export function cachedPath(request: Request, scope: string): string | null {
  const inside = pathInside(request.url, scope);
  if (request.method !== 'GET' || inside === null) return null;
  const path = plainPath(inside);
  const { headers } = request;
  // In a static export payloads are files of their own.
  if (headers.get(routerHeader) !== '1' || path.endsWith('.txt')) return path;
  return headers.has(prefetchHeader) || headers.has(segmentHeader) ? null : path + routePayload;
}

/**
 * The request that fetches a listed file from the server.
 *
 * @param scope as for {@link pathInside}
 * @param pastCaches past the browser's cache, and past shared ones by an address that none of them has seen
 */
export function requestOf({ path }: AppFile, scope: string, pastCaches = false): Request {
  const isPayload = path.endsWith(routePayload);
  const file = isPayload ? path.slice(0, -routePayload.length) : path;
  const address = new URL(file.slice(1), scope);
  // Next redirects a payload without this query.
  if (isPayload) address.search = '_rsc';
  if (pastCaches) address.searchParams.set('past-caches', crypto.randomUUID());
  // Names in this folder change with the content; everything else has to be asked for.
  const cache = path.startsWith('/_next/static/') ? 'default' : 'no-cache';
  return new Request(address, {
    cache: pastCaches ? 'reload' : cache,
    headers: isPayload ? { [routerHeader]: '1' } : {},
    credentials: 'same-origin',
  });
}

/** The hash of a file's content, as the list has it. */
export async function hashOf(content: BufferSource): Promise<string> {
  return (await sha256(content)).slice(0, 32);
}

/** The page for addresses that are not in the cache and cannot be reached. */
export const offlinePath = '/offline';

/** Whether a path belongs to the server alone: it must never be answered from a cache. */
export function isServerPath(pathname: string): boolean {
  return /^\/(api|files|s|oembed|healthz|readyz|metrics)(\/|$)/.test(pathname);
}
