import type { ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../contract/v3';
import { root } from '../paths';
import {
  exitCode,
  freePort,
  outputOf,
  signalTree,
  startChild,
  startFlags,
  stopTree,
} from '../process';
import { nextEnvironment } from './build';

const host = '127.0.0.1';
const startLimitMs = 120_000;

/** The keys that the first start of a server creates. */
interface FirstKeys {
  /** A key of the owner, with the scopes of any new key. */
  readonly apiKey: string;
  readonly workerToken: string;
  /** Signs a browser in, once. */
  readonly signInToken: string;
}

/** A running app whose API is open as well. */
export interface ApiServer extends FirstKeys {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** Everything the server printed so far. */
  output(): string;
  /** Ends the server with SIGTERM and removes its temporary folder. */
  stop(): Promise<void>;
  /** Ends it with SIGKILL, as a crash would. The folder stays until `stop()`. */
  kill(): Promise<void>;
}

/** How a server is started. */
interface ServerOptions {
  /** Settings that replace the defaults of tests. Settings of this process are not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder of its data, to start on existing data; a new temporary folder where absent. */
  readonly folder?: string;
  /** A free port where absent. */
  readonly port?: number;
}

/**
 * Starts the server as `npm start -- --accept-terms` does, for tests: on a free port of this machine only, and waits until pages
 * and API are there. The caller stops it. When this process ends first, the server ends with it.
 *
 * @returns with the keys of the first start in this folder; they are empty where the database existed before
 */
export async function startServer(options: ServerOptions = {}): Promise<ApiServer> {
  const port = options.port ?? (await freePort());
  const folder = options.folder ?? (await mkdtemp(path.join(tmpdir(), 'kinora-app-')));
  const keysFile = path.join(folder, 'first-start.json');
  const child = startChild(
    [...startFlags(), path.join(root, 'relay', 'start.js'), '--accept-terms'],
    {
      env: {
        ...nextEnvironment,
        ...withoutSettings(),
        KINORA_HOST: host,
        PORT: String(port),
        KINORA_DATA: folder,
        KINORA_LOG: 'warn',
        KINORA_STOP_SECONDS: '2',
        KINORA_FIRST_START_FILE: keysFile,
        KINORA_END_WITH_PARENT: '1',
        // The model of tests may serve as well.
        KINORA_SERVING_MODELS: 'wan2.2-ti2v-5b,mini,tiny',
        ...options.env,
      },
    },
  );
  const output = outputOf(child.stdout, child.stderr);
  const removeFolder = () => {
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
  };
  const endWithUs = () => {
    signalTree(child, 'SIGKILL');
    removeFolder();
  };
  process.once('exit', endWithUs);
  const kill = async () => {
    signalTree(child, 'SIGKILL');
    await exitCode(child);
  };
  const stop = async () => {
    await stopTree(child);
    removeFolder();
    process.off('exit', endWithUs);
  };
  try {
    await untilItRuns(child, output);
    // Only a first start writes it.
    const text = await readFile(keysFile, 'utf8').catch(() => '');
    const none = { apiKey: '', workerToken: '', signInToken: '' };
    const keys: FirstKeys = text === '' ? none : JSON.parse(text);
    return { origin: `http://${host}:${port}`, output, kill, stop, ...keys };
  } catch (error) {
    await stop();
    throw new Error(`The app did not start: ${messageOf(error)}\n${output().trimEnd()}`, {
      cause: error,
    });
  }
}

/** The settings of this process, blank: the server must use only those that it is given. */
function withoutSettings(): Record<string, string> {
  const names = Object.keys(process.env).filter((name) =>
    /^(KINORA_|S3_|DATABASE_URL$)/.test(name),
  );
  return Object.fromEntries(names.map((name) => [name, '']));
}

/** The server prints its address when pages and API are there, and the keys of a first start are written. */
async function untilItRuns(child: ChildProcess, output: () => string): Promise<void> {
  const deadline = performance.now() + startLimitMs;
  while (!output().includes('Kinora runs at')) {
    if (child.exitCode !== null) throw new Error(`it ended with code ${child.exitCode}.`);
    if (performance.now() > deadline) {
      throw new Error(`no answer within ${startLimitMs / 1000} s.`);
    }
    await delay(20);
  }
}
