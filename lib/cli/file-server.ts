import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';

/** A folder served on loopback, for a page of another port. */
export interface FileServer {
  /** With a trailing slash. */
  readonly base: string;
  close(): Promise<void>;
}

/** Types of the files of a page; the rest are weights. */
const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
};

/**
 * Serves folders read-only, with ranges, to any origin of this machine. Its own pages are cross-origin isolated.
 *
 * @param roots the first one that has a file answers
 */
export async function serveFolders(roots: readonly string[]): Promise<FileServer> {
  const server = createServer((request, response) => {
    answer(roots, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (!address || typeof address !== 'object') throw new Error('The file server has no address.');
  return {
    base: `http://127.0.0.1:${address.port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  roots: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
) {
  // A request with a range needs a CORS preflight, and the page is cross-origin isolated.
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.setHeader('Access-Control-Allow-Headers', 'Range');
  response.setHeader('Access-Control-Expose-Headers', 'Content-Range, Content-Length');
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Embedder-Policy', 'require-corp');
  if (request.method === 'OPTIONS') return void response.writeHead(204).end();
  const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1');
  const entry = await find(roots, decodeURIComponent(pathname));
  if (!entry) return void response.writeHead(404).end();
  const { file, facts } = entry;
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
  const start = first ? Number(first) : 0;
  const end = Math.min(last ? Number(last) : facts.size - 1, facts.size - 1);
  if (start > end && facts.size > 0) {
    return void response.writeHead(416, { 'Content-Range': `bytes */${facts.size}` }).end();
  }
  response.setHeader('Content-Type', types[path.extname(file)] ?? 'application/octet-stream');
  response.setHeader('Content-Length', Math.max(0, end - start + 1));
  if (first) response.setHeader('Content-Range', `bytes ${start}-${end}/${facts.size}`);
  response.writeHead(first ? 206 : 200);
  if (request.method === 'HEAD' || facts.size === 0) return void response.end();
  createReadStream(file, { start, end }).pipe(response);
}

async function find(roots: readonly string[], pathname: string) {
  // A page's address has no extension, as in the app.
  const names = path.extname(pathname) === '' ? [pathname, `${pathname}.html`] : [pathname];
  for (const root of roots) {
    for (const name of names) {
      const file = path.join(root, name);
      if (!file.startsWith(root + path.sep)) continue;
      // Not there: the next name or folder.
      const facts = await stat(file).catch(() => null);
      if (facts?.isFile()) return { file, facts };
    }
  }
  return null;
}
