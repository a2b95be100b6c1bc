import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import path from 'node:path';
import { projectRoot } from '../store/folders';

/**
 * Starts Next inside of this process, so that its route handlers see the running relay.
 *
 * @param options.dev compiles on demand and reloads pages; else a finished build is served
 * @throws Error with one sentence when there is no build
 */
export async function openNext({
  server,
  ...options
}: {
  dev: boolean;
  hostname: string;
  port: number;
  server: Server;
}): Promise<Pages> {
  if (!options.dev && !existsSync(path.join(projectRoot, '.next', 'BUILD_ID'))) {
    throw new Error('There is no build of the app yet. Run npm run build first.');
  }
  // Next reads it while its modules are loaded; test runners set a value that Next does not know.
  Object.assign(process.env, { NODE_ENV: options.dev ? 'development' : 'production' });
  const { default: next } = await import('next');
  // Next listens to the upgrades of the server that it is given: its development tools need them. Without a
  // listener Node answers such requests as ordinary ones.
  const httpServer = options.dev ? server : createServer();
  const app = next({ ...options, dir: projectRoot, httpServer });
  if (options.dev) await app.prepare();
  else await toStderr(() => app.prepare());
  const handle = app.getRequestHandler();
  return {
    anyMethod: options.dev,
    handle: (request, response) => {
      keepRefusal(response);
      return handle(request, response);
    },
    close: () => app.close(),
  };
}

/**
 * Keeps the status of a file whose condition or range fails: Next sets 412 or 416, looks for a page of that name, and
 * answers 500 with a text (16.4.5). The answer has no body instead.
 */
export function keepRefusal(response: ServerResponse): void {
  let status = response.statusCode;
  const endEmpty = () => {
    Reflect.deleteProperty(response, 'end');
    for (const name of ['Content-Type', 'ETag']) response.removeHeader(name);
    return response.setHeader('Content-Length', 0).end();
  };
  const set = (next: number) => {
    if (status === 412 || status === 416) return;
    status = next;
    if (status === 412 || status === 416) response.end = endEmpty;
  };
  Object.defineProperty(response, 'statusCode', { get: () => status, set });
}

/** Sends Next's lines about its start to stderr, as stdout is the log. */
async function toStderr(work: () => Promise<void>): Promise<void> {
  const { log } = console;
  console.log = console.error;
  try {
    await work();
  } finally {
    console.log = log;
  }
}

/** Answers every request that the Node server does not answer itself: Next, or a substitute in tests. */
export interface Pages {
  /** Whether paths outside of the API take other methods than GET and HEAD: Next's development tools. */
  readonly anyMethod?: boolean;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<void>;
}
