import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type FaultRule, FaultScript } from './faults';
import { type HubFile, Repositories } from './repositories';
import { reset, sendBody } from './send-body';

/** One answered request. */
export interface HubRequest {
  readonly host: 'hub' | 'storage';
  readonly path: string;
  /** `Range` as it came; null without one. */
  readonly range: string | null;
  readonly status: number;
  /** First byte of the file that the body has; 0 for other answers. */
  readonly start: number;
  /** Bytes of a file that were written to the connection. */
  readonly bytesSent: number;
}

/** What was served of one file. */
export interface Served {
  readonly bytes: number;
  readonly requests: number;
  /** Bytes of the file that went over the wire more than once. */
  readonly bytesTwice: number;
}

/** A hub on this machine that answers as the real one does, and fails by given rules. */
export interface LocalHub {
  /** Base address, without a trailing slash. */
  readonly url: string;
  readonly repositories: Repositories;
  readonly requests: readonly HubRequest[];
  /** `Authorization` of every request that had one, and which server got it. */
  readonly authorizations: readonly { readonly host: HubRequest['host']; readonly value: string }[];
  /** Lets something go wrong. */
  fail(rule: FaultRule): void;
  /** Ends all faults. */
  heal(): void;
  /** What went over the wire of a file, whichever server sent it. */
  served(path: string): Served;
  forget(): void;
  close(): Promise<void>;
}

/** Files of this many bytes or more lie in the storage. */
const largeFrom = 4096;
/** Files in one answer of the tree: few, so that every test follows its pages. */
const pageSize = 4;

/** What a page may read of the hub's answers, as on the real one: `Retry-After` is not among it. */
const exposed =
  'X-Repo-Commit, X-Error-Code, X-Error-Message, ETag, Link, Accept-Ranges, Content-Range, X-Linked-Size, X-Linked-ETag';

/**
 * Starts a hub: `/{repository}/resolve/{revision}/{path}`, the tree and the revision of the API, and
 * on a second port the storage that large files are redirected to.
 */
export async function startHub(): Promise<LocalHub> {
  const repositories = new Repositories(largeFrom);
  const script = new FaultScript();
  const requests: HubRequest[] = [];
  const answer = { repositories, script, requests };
  const authorizations: { host: HubRequest['host']; value: string }[] = [];
  const note = (host: HubRequest['host'], { headers }: IncomingMessage) => {
    if (headers.authorization) authorizations.push({ host, value: headers.authorization });
  };
  const storage = createServer((request, response) => {
    note('storage', request);
    void fromStorage(answer, request, response);
  });
  const storageUrl = await listen(storage);
  const hub = createServer((request, response) => {
    note('hub', request);
    void fromHub(answer, storageUrl, request, response);
  });
  const url = await listen(hub);
  return {
    url,
    repositories,
    requests,
    authorizations,
    fail: (rule) => script.add(rule),
    heal: () => script.clear(),
    served: (path) => served(requests.filter((request) => request.path.endsWith(path))),
    forget: () => {
      requests.splice(0);
      authorizations.splice(0);
    },
    close: async () => {
      await Promise.all([closed(hub), closed(storage)]);
    },
  };
}

interface Answering {
  readonly repositories: Repositories;
  readonly script: FaultScript;
  readonly requests: HubRequest[];
}

/** An answer of the hub that has no bytes of a file. */
const unsent = { host: 'hub', range: null, start: 0, bytesSent: 0 } as const;

async function fromHub(
  answering: Answering,
  storageUrl: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (preflight(request, response, exposed)) return;
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  const path = decodeURIComponent(url.pathname);
  const api = /^\/api\/models\/([^/]+\/[^/]+)\/(tree|revision)\/([^/]+)$/.exec(path);
  const resolve = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path);
  const [, repository = '', what, revision = ''] = api ?? [];
  if (api) {
    const fault = answering.script.next({ host: 'hub', path, start: 0 });
    answering.requests.push({ ...unsent, path, status: 200 });
    if (fault?.kind === 'reset') return reset(request, fault);
    if (fault?.kind === 'status') {
      return void response.writeHead(fault.status, fault.headers).end();
    }
    const files = filesAt(answering.repositories, repository, revision);
    if (!files) return notFound(response, 'RepoNotFound');
    const commit = answering.repositories.commit(repository);
    response.setHeader('Content-Type', 'application/json');
    const json =
      what === 'tree'
        ? page(tree(files), url, request, response)
        : {
            _id: '1',
            id: repository,
            sha: commit,
            cardData: { license: answering.repositories.licences.get(repository) },
          };
    return void response.writeHead(200).end(JSON.stringify(json));
  }
  const [, owner = '', commitOrBranch = '', inside = ''] = resolve ?? [];
  const file = filesAt(answering.repositories, owner, commitOrBranch)?.get(inside);
  if (!file) {
    answering.requests.push({ ...unsent, path, status: 404 });
    return notFound(response, 'EntryNotFound');
  }
  const token = answering.repositories.gates.get(owner);
  if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
    return void response.writeHead(401, { 'X-Error-Code': 'GatedRepo' }).end();
  }
  response.setHeader('X-Repo-Commit', answering.repositories.commit(owner));
  if (!file.large) return send(answering, 'hub', path, file, request, response);

  const fault = answering.script.next({ host: 'hub', path, start: firstByte(request) });
  const range = request.headers.range ?? null;
  const status = fault?.kind === 'status' ? fault.status : 302;
  answering.requests.push({ ...unsent, path, range, status });
  if (fault?.kind === 'reset') return reset(request, fault);
  if (fault?.kind === 'status') return void response.writeHead(fault.status, fault.headers).end();
  response.setHeader('X-Linked-Size', file.bytes.length);
  response.setHeader('X-Linked-ETag', `"${file.sha256}"`);
  // Signed for an hour, as the real storage's addresses are.
  const expires = Date.now() + (fault?.kind === 'expired' ? -1000 : 3_600_000);
  const signed = `${storageUrl}/${file.sha256}/${encodeURI(path)}?Expires=${expires}`;
  const location = fault?.kind === 'loop' ? url.pathname : signed;
  response.writeHead(302, { Location: location }).end();
}

async function fromStorage(
  answering: Answering,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (preflight(request, response, '')) return;
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  const path = decodeURIComponent(url.pathname);
  if (Number(url.searchParams.get('Expires')) < Date.now()) {
    const range = request.headers.range ?? null;
    answering.requests.push({ ...unsent, host: 'storage', path, range, status: 403 });
    response.writeHead(403, { 'Content-Type': 'application/xml' });
    return void response.end('<Error><Code>AccessDenied</Code></Error>');
  }
  const file = answering.repositories.stored(path.split('/')[1] ?? '');
  if (!file) return notFound(response, 'EntryNotFound');
  return send(answering, 'storage', path, file, request, response);
}

async function send(
  { script, requests }: Answering,
  host: 'hub' | 'storage',
  path: string,
  file: HubFile,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const start = firstByte(request);
  const fault = script.next({ host, path, start });
  const range = request.headers.range ?? null;
  const entry = { host, path, range, status: 0, start: 0, bytesSent: 0 };
  requests.push(entry);
  await sendBody(file, request, response, fault, entry, script.healed);
}

/** @param visible headers that a page may read; of the storage, none but the few that it always may */
function preflight(request: IncomingMessage, response: ServerResponse, visible: string): boolean {
  response.setHeader('Access-Control-Allow-Origin', '*');
  if (visible !== '') response.setHeader('Access-Control-Expose-Headers', visible);
  response.setHeader('Access-Control-Allow-Headers', 'Authorization, Content-Type');
  if (request.method !== 'OPTIONS') return false;
  response.writeHead(204).end();
  return true;
}

function firstByte(request: IncomingMessage): number {
  return Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
}

/** Files of a repository on its branch or at its present commit. */
function filesAt(repositories: Repositories, repository: string, revision: string) {
  const known = revision === 'main' || revision === repositories.commit(repository);
  return known ? repositories.list(repository) : undefined;
}

function tree(files: ReadonlyMap<string, HubFile>): unknown[] {
  return [...files].map(([path, { bytes, large, oid, sha256 }]) => ({
    type: 'file',
    path,
    size: bytes.length,
    oid,
    ...(large ? { lfs: { oid: sha256, size: bytes.length, pointerSize: 134 } } : {}),
  }));
}

/** One page of a list; `Link` leads to the next. */
function page(
  entries: readonly unknown[],
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): readonly unknown[] {
  const from = Number(url.searchParams.get('cursor') ?? 0);
  if (from + pageSize < entries.length) {
    const next = new URL(`${url.pathname}${url.search}`, `http://${request.headers.host}`);
    next.searchParams.set('cursor', String(from + pageSize));
    response.setHeader('Link', `<${next}>; rel="next"`);
  }
  return entries.slice(from, from + pageSize);
}

function notFound(response: ServerResponse, code: string): void {
  response.writeHead(404, { 'X-Error-Code': code }).end('Not found');
}

function served(requests: readonly HubRequest[]): Served {
  const parts = requests.filter(({ bytesSent }) => bytesSent > 0);
  const bytes = parts.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
  let reached = 0;
  let distinct = 0;
  for (const { start, bytesSent } of parts.sort((a, b) => a.start - b.start)) {
    const end = start + bytesSent;
    distinct += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return { bytes, requests: parts.length, bytesTwice: bytes - distinct };
}

function listen(server: Server): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      if (!address || typeof address !== 'object') reject(new Error('The hub has no address.'));
      else resolve(`http://127.0.0.1:${address.port}`);
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
