import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Logger, pino } from 'pino';
import { termsVersion } from '../../lib/contract';
import { type Config, readConfig } from '../config';
import { answer } from '../http/answer';
import { sendAnswer } from '../http/reply';
import { toRequest } from '../http/request';
import { startServer } from '../http/server';
import { openRelay, type RunningRelay } from '../open';
import { pgliteTemplate } from './pglite';
import { type Answered, readAnswer, requestOf, type Sent } from './requests';

/** A node with everything real but Next: the API answers where Next's route handlers would call it. */
export interface TestRelay {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  readonly config: Config;
  readonly relay: RunningRelay;
  /** Of the owner of the first start; empty for a node that was not the first on its database. */
  readonly apiKey: string;
  readonly workerToken: string;
  readonly signInToken: string;
  /** One request over HTTP to a path. */
  send(method: string, path: string, sent?: Sent): Promise<Answered>;
  /** Ends it as SIGTERM would; its temporary folder goes, one that was given stays. */
  stop(): Promise<void>;
}

/** Options of a test. */
export interface TestRelayOptions {
  /** Settings as in the environment; over the tests' own. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A PostgreSQL database; PGlite where absent. */
  readonly databaseUrl?: string;
  /** Where files are kept; a folder that goes with the node where absent. */
  readonly folder?: string;
  /** Silent where absent. */
  readonly log?: Logger;
  /** Whether sweepers, webhooks and intake run. Default true. */
  readonly background?: boolean;
}

/**
 * Starts a node on a free port of this machine. Loopback addresses are allowed for webhooks and
 * images, sweeps are frequent, and there are no rate limits.
 */
export async function startTestRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const folder = options.folder ?? (await mkdtemp(path.join(tmpdir(), 'kinora-relay-')));
  const config = readConfig({
    PORT: '0',
    KINORA_DATA: folder,
    KINORA_ALLOW_PRIVATE: '1',
    KINORA_SWEEP_SECONDS: '0.2',
    KINORA_STOP_SECONDS: '5',
    KINORA_REQUESTS_PER_ADDRESS: '0',
    KINORA_BAD_KEYS_PER_ADDRESS: '0',
    KINORA_READS_PER_MINUTE: '0',
    KINORA_SUBMITS_PER_MINUTE: '0',
    KINORA_SHARES_PER_MINUTE: '0',
    ...(options.databaseUrl !== undefined && { DATABASE_URL: options.databaseUrl }),
    ...options.settings,
  });
  if (config.DATABASE_URL === undefined && !existsSync(path.join(folder, 'db'))) {
    await cp(await pgliteTemplate(), folder, { recursive: true });
  }
  const log = options.log ?? pino({ level: 'silent' });
  const server = await startServer({
    config,
    log,
    pages: async () => ({
      handle: async (request, response) => {
        if (request.url?.startsWith('/api/')) {
          const answered = await answer(await server.relay, toRequest(request, response));
          await sendAnswer(request, response, answered);
        } else response.writeHead(404).end();
      },
      close: async () => undefined,
    }),
    open: (listening) => openRelay(listening, log),
  });
  const stop = async () => {
    await server.stop();
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
  };
  try {
    const relay = await server.relay;
    if (options.background !== false) relay.start();
    const first = await relay.keys.firstStart(termsVersion);
    const none = { apiKey: '', workerToken: '', signInToken: '' };
    const send: TestRelay['send'] = async (method, where, sent) =>
      readAnswer(await fetch(requestOf(method, server.origin + where, sent)));
    const { config: opened } = relay;
    return { origin: server.origin, config: opened, relay, ...(first ?? none), send, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
