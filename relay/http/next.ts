import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath } from 'node:url';

const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Starts Next inside of this process, so that its route handlers see the running relay.
 *
 * @param options.dev compiles on demand and reloads pages; else a finished build is served
 * @throws Error with one sentence when there is no build
 */
export async function openNext(options: {
  dev: boolean;
  hostname: string;
  port: number;
}): Promise<Pages> {
  if (!options.dev && !existsSync(path.join(projectRoot, '.next', 'BUILD_ID'))) {
    throw new Error('There is no build of the app yet. Run npm run build first.');
  }
  // Next reads it while its modules are loaded, and test runners set it to what Next does not know.
  Object.assign(process.env, { NODE_ENV: options.dev ? 'development' : 'production' });
  const { default: next } = await import('next');
  // Left to itself Next listens for every upgrade of the server it finds. It is given a server that never
  // listens, so that malformed upgrades are answered by ours.
  const ears = createServer();
  const app = next({ ...options, dir: projectRoot, httpServer: ears });
  if (options.dev) await app.prepare();
  else await toStderr(() => app.prepare());
  const handle = app.getRequestHandler();
  return {
    anyMethod: options.dev,
    handle: (request, response) => handle(request, response),
    ...(options.dev && {
      upgrade: (request, socket, head) => void ears.emit('upgrade', request, socket, head),
    }),
    close: () => app.close(),
  };
}

/** What Next says while it starts is for people: stdout is the log, which goes there on its own. */
async function toStderr(work: () => Promise<void>): Promise<void> {
  const { log } = console;
  console.log = console.error;
  try {
    await work();
  } finally {
    console.log = log;
  }
}

/** What answers everything that the Node server does not answer itself: Next, or a test's stand-in. */
export interface Pages {
  /** Whether more than GET and HEAD means anything outside of the API: Next's tools in development. */
  readonly anyMethod?: boolean;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Takes over an upgraded connection; absent where there are none. */
  upgrade?(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  close(): Promise<void>;
}
