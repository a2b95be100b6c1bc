import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server in front of the app, which can stop, break a file, and bring newer versions of the app. */
export interface AppFront {
  readonly origin: string;
  /** Number of the version: 1 is the app as it was built. */
  version: number;
  /** Path that is answered with 503, whatever its query. */
  broken: string | null;
  /** Whether requests stay without an answer, as behind a connection that is gone without a word. */
  silent: boolean;
  /** Paths that were asked for since this was emptied. */
  readonly asked: string[];
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/**
 * Serves the app of another server. From version 2 on its service worker, its list of files and the page
 * `/` are others: `<html data-version="2">`.
 */
export async function startFront(app: string): Promise<AppFront> {
  const worker = '/_next/static/service-worker/sw.js';
  const text = async (path: string) => (await fetch(app + path)).text();
  const build = /="([\w-]{10,})";function/.exec(await text(worker));
  const id = build?.[1];
  if (!id) throw new Error('the service worker does not tell its build');
  const idOf = (version: number) => (version === 1 ? id : `${id}-${version}`);
  const page = await text('/');

  async function answer(path: string, headers: Headers): Promise<Answer> {
    const { version } = front;
    const list = /^\/_next\/static\/([^/]+)\/files\.json$/.exec(path);
    const isBroken = path.split('?')[0] === front.broken;
    if (isBroken || (list && list[1] !== idOf(version))) {
      return { status: isBroken ? 503 : 404, headers: {}, body: Buffer.alloc(0) };
    }
    const upstream = await fetch(app + (list ? path.replace(idOf(version), id as string) : path), {
      headers,
      redirect: 'manual',
    });
    let body = Buffer.from(await upstream.arrayBuffer());
    if (version > 1) body = Buffer.from(changed(path, headers, body));
    const passed = [...upstream.headers].filter(([name]) => !dropped.has(name));
    return { status: upstream.status, headers: Object.fromEntries(passed), body };
  }

  /** The same file in the present version. */
  function changed(path: string, headers: Headers, body: Buffer): Buffer | string {
    const { version } = front;
    if (path === worker) return body.toString().replaceAll(id as string, idOf(version));
    if (path.endsWith('/files.json')) {
      const { files } = JSON.parse(body.toString()) as { files: { path: string; hash: string }[] };
      const listed = files.find((file) => file.path === '/');
      const hash = createHash('sha256').update(pageOf(version)).digest('hex');
      if (listed) listed.hash = hash.slice(0, 32);
      return JSON.stringify({ files });
    }
    const isPage = /^\/(\?|$)/.test(path) && !headers.has('rsc');
    return isPage ? pageOf(version) : body;
  }

  const pageOf = (version: number) => page.replace('<html', `<html data-version="${version}"`);

  async function serve(path: string, headers: Headers, response: ServerResponse): Promise<void> {
    const { status, headers: sent, body } = await answer(path, headers);
    response.writeHead(status, sent).end(body);
  }

  const make = () =>
    createServer((request, response) => {
      const path = request.url ?? '/';
      front.asked.push(path);
      if (front.silent) return;
      const headers = new Headers();
      for (const name of ['rsc', 'accept', 'range', 'next-router-state-tree']) {
        const value = request.headers[name];
        if (typeof value === 'string') headers.set(name, value);
      }
      serve(path, headers, response).catch(() => response.destroy());
    });
  let server = make();
  let port = 0;
  const front: AppFront = {
    get origin() {
      return `http://127.0.0.1:${port}`;
    },
    version: 1,
    broken: null,
    silent: false,
    asked: [],
    async start() {
      server = make().listen(port, '127.0.0.1');
      await once(server, 'listening');
      port = (server.address() as AddressInfo).port;
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  await front.start();
  return front;
}

/** Headers that belong to one connection, or to a body that was packed. */
const dropped = new Set(['content-length', 'content-encoding', 'transfer-encoding', 'connection']);
