import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../config';
import { within } from '../loop';
import type { RunningRelay } from '../open';
import type { Pages } from './next';
import { createRequestServer, type RequestServer } from './server';
import type { Patience } from './timeouts';

/** What a node is started from. */
export interface StartOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Starts what answers everything else; called once the port is known. */
  readonly pages: (at: { hostname: string; port: number }) => Promise<Pages>;
  /** Opens the relay, with the port that the server has. */
  readonly open: (config: Config) => Promise<RunningRelay>;
  /** Opens the relay only when a request needs it: for programs that only want the pages. */
  readonly lazy?: boolean;
  readonly patience?: Patience;
}

/** A node that listens. */
export interface RunningServer {
  /** Where this machine reaches it, such as `http://127.0.0.1:3000`. */
  readonly origin: string;
  readonly port: number;
  /** Resolves once the relay is open; rejects with what kept it from opening. */
  readonly relay: Promise<RunningRelay>;
  /** Answers that are under way. */
  readonly open: number;
  /**
   * Ends the node: no new claims; held answers, open answers and webhooks under way end, within
   * `KINORA_STOP_SECONDS`; then everything is closed. Calling it again waits for the same end.
   */
  stop(): Promise<void>;
}

/**
 * Starts a node. The port comes first: a taken one is said before anything is opened. Pages come
 * second and the relay last, as a page can be shown without it; requests that need it wait.
 *
 * @throws Error with one sentence when it cannot listen; whatever `pages` throws
 */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { log } = options;
  const relay = deferred<RunningRelay>();
  const pages = deferred<Pages>();
  let opened: RunningRelay | null = null;
  let stopping: Promise<void> | null = null;
  let asked = false;
  const requests = createRequestServer({
    config: options.config,
    log,
    relay: () => {
      openOnce();
      return relay.promise;
    },
    pages: pages.promise,
    standing: {
      relay: () => opened,
      get stopping() {
        return stopping !== null;
      },
    },
    ...(options.patience && { patience: options.patience }),
  });
  const port = await listen(requests.server, options.config);
  const { KINORA_HOST: hostname, KINORA_STOP_SECONDS: stopSeconds } = options.config;
  const config: Config = { ...options.config, PORT: port };

  const stop = () => {
    stopping ??= stopAll();
    return stopping;
  };
  const stopAll = async () => {
    if (!asked) relay.reject(new Error('The node was stopped before its relay was opened.'));
    asked = true;
    // It may also be stopped while the relay is being opened.
    const running = await relay.promise.catch(() => null);
    await endGently(requests, running, stopSeconds * 1000, log);
    await running?.stop();
    await pages.promise.then((open) => open.close()).catch(() => undefined);
  };

  const openOnce = () => {
    if (asked) return;
    asked = true;
    void options.open(config).then(
      (running) => {
        opened = running;
        relay.resolve(running);
      },
      (error: unknown) => relay.reject(error),
    );
  };

  try {
    pages.resolve(await options.pages({ hostname, port }));
  } catch (error) {
    pages.reject(error);
    relay.reject(error);
    await stop();
    throw error;
  }
  if (!options.lazy) openOnce();
  return {
    origin: `http://${reachable(hostname)}:${port}`,
    port,
    relay: relay.promise,
    get open() {
      return requests.open;
    },
    stop,
  };
}

/** Lets what is under way end, and then ends what has not. */
async function endGently(
  requests: RequestServer,
  relay: RunningRelay | null,
  patienceMs: number,
  log: Logger,
): Promise<void> {
  const { server } = requests;
  const deadline = performance.now() + patienceMs;
  const left = () => Math.max(0, deadline - performance.now());
  const work = relay?.finish() ?? Promise.resolve();
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const ended = await within(left(), Promise.all([requests.quiet(), work]));
  if (!ended) log.warn({ open: requests.open }, 'some answers or deliveries were cut off');
  requests.cutUpgrades();
  server.closeAllConnections();
  await closed;
}

function listen(server: RequestServer['server'], config: Config): Promise<number> {
  const { KINORA_HOST: host, PORT } = config;
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new Error(sentence(cause, host, PORT), { cause }));
    });
    server.listen(PORT, host, () => resolve((server.address() as AddressInfo).port));
  });
}

function sentence(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === 'EADDRINUSE') {
    return `Port ${port} of ${host} is taken. Stop what has it, or set PORT to another one.`;
  }
  if (error.code === 'EACCES')
    return `Port ${port} may not be used here. Set PORT to one above 1023.`;
  return `The server cannot listen on ${host}, port ${port}: ${error.message}.`;
}

/** The host as an address has it; of all addresses of this machine, the one it calls itself by. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** A promise with its handles (Node 20 has no `Promise.withResolvers`). Its rejection may go unheard. */
function deferred<T>(): Deferred<T> {
  let handles: Pick<Deferred<T>, 'resolve' | 'reject'> | null = null;
  const promise = new Promise<T>((resolve, reject) => {
    handles = { resolve, reject };
  });
  promise.catch(() => undefined);
  return {
    promise,
    resolve: (value) => handles?.resolve(value),
    reject: (reason) => handles?.reject(reason),
  };
}
