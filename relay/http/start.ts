import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { type Config, localOrigin } from '../config';
import { once, within } from '../loop';
import type { RunningRelay } from '../open';
import type { Pages } from './next';
import { createRequestServer } from './server';
import type { Timeouts } from './timeouts';

/** How often connections are closed that have become idle while the node stops, in milliseconds. */
const idleCheckMs = 50;

export interface StartOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Opens the pages; called once the port is known. */
  readonly pages: (at: { hostname: string; port: number; server: Server }) => Promise<Pages>;
  /** Opens the relay, with the port that the server has. */
  readonly open: (config: Config) => Promise<RunningRelay>;
  readonly timeouts?: Timeouts;
}

/**
 * Starts a node, and returns once it listens: a port that is in use is reported before anything is opened.
 * Then the relay opens, and after it the pages: both compute on one thread, and the API needs no page.
 * Requests wait for what they need.
 *
 * @throws Error with one sentence when it cannot listen
 */
export async function startServer(options: StartOptions) {
  const { log } = options;
  const { KINORA_HOST: hostname, KINORA_STOP_SECONDS: stopSeconds } = options.config;
  let opened: RunningRelay | null = null;
  let stopping = false;
  const server = createRequestServer({
    config: options.config,
    log,
    // Read after the server listens, when both are there.
    relay: () => relay,
    pages: () => pages,
    status: { relay: () => opened, stopping: () => stopping },
    ...(options.timeouts && { timeouts: options.timeouts }),
  });
  const port = await listen(server, options.config);
  const config: Config = { ...options.config, PORT: port };
  const relay = options.open(config).then((open) => {
    opened = open;
    return open;
  });
  const pages = relay.then(() => {
    if (stopping) throw new Error('The node was stopped before its pages were opened.');
    return options.pages({ hostname, port, server });
  });
  // Whoever waits for them gets the error.
  pages.catch(() => undefined);
  return {
    /** Address for programs of this machine, such as `http://127.0.0.1:3000`. */
    origin: localOrigin(config),
    port,
    /** Resolves once the relay is open; rejects with the error that kept it from opening. */
    relay,
    pages,
    /**
     * Ends the node: no new claims; held claims, open answers and webhook attempts end within
     * `KINORA_STOP_SECONDS`; then everything is closed. Later calls wait for the same end.
     */
    stop: once(async () => {
      stopping = true;
      // The relay may be opening just now.
      const running = await relay.catch(() => null);
      await endAnswers(server, running, stopSeconds * 1000, log);
      await running?.stop();
      // Pages that never opened need no end.
      await pages.then((open) => open.close()).catch(() => undefined);
    }),
  };
}
export type RunningServer = Awaited<ReturnType<typeof startServer>>;

/** Waits until answers and background work have ended, for a limited time, and cuts the others. */
async function endAnswers(
  server: Server,
  relay: RunningRelay | null,
  limitMs: number,
  log: Logger,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A connection is idle once its answer has ended: its client may keep it open.
  const closing = setInterval(() => server.closeIdleConnections(), idleCheckMs);
  const ended = await within(limitMs, Promise.all([closed, relay?.finish()]));
  if (!ended) log.warn('some answers or deliveries were cut off');
  server.closeAllConnections();
  await closed;
  clearInterval(closing);
}

function listen(server: Server, { KINORA_HOST: host, PORT }: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new Error(listenError(cause, host, PORT), { cause }));
    });
    server.listen(PORT, host, () => resolve((server.address() as AddressInfo).port));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === 'EADDRINUSE') {
    return `Port ${port} of ${host} is taken. Stop what has it, or set PORT to another one.`;
  }
  if (error.code === 'EACCES') {
    return `Port ${port} may not be used here. Set PORT to one above 1023.`;
  }
  return `The server cannot listen on ${host}, port ${port}: ${error.message}.`;
}
