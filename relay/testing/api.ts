import { rm } from 'node:fs/promises';
import type { DestinationStream } from 'pino';
import type { Scope, SubmitInput, WorkerDeclaration } from '../../lib/contract/v3';
import { readConfig } from '../config';
import { answer } from '../http/answer';
import { createLog } from '../observe/log';
import { openRelay, type RunningRelay } from '../open';
import { testWorker } from './jobs';
import { pgliteFolder } from './pglite';
import { type Answered, readAnswer, requestOf, type Sent } from './requests';

/** A PNG of one pixel, as a data URI: the smallest image that is one. */
export const onePixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

/** A submission that needs nothing else. */
export const submission: SubmitInput = { image: onePixel, prompt: 'a boat', seed: 7 };

/** A whole node without a port: requests go straight to the API's code. */
export interface TestApi {
  readonly relay: RunningRelay;
  /** Lines of the log, parsed. */
  readonly logged: Record<string, unknown>[];
  key(owner: string, more?: { scopes?: Scope[]; shared?: boolean }): Promise<string>;
  workerToken(owner: string, shared?: boolean): Promise<string>;
  send(method: string, path: string, sent?: Sent): Promise<Answered>;
  /** The same without reading the answer. */
  open(path: string, key: string, signal?: AbortSignal): Promise<Response>;
  close(): Promise<void>;
}

/** Opens a node in a folder of its own. Its background work does not run. */
export async function openTestApi(settings: Record<string, string> = {}): Promise<TestApi> {
  const folder = await pgliteFolder();
  const config = readConfig({
    KINORA_DATA: folder,
    KINORA_PUBLIC_URL: 'https://kinora.test',
    KINORA_REQUESTS_PER_ADDRESS: '0',
    KINORA_BAD_KEYS_PER_ADDRESS: '0',
    ...settings,
  });
  const logged: Record<string, unknown>[] = [];
  const lines: DestinationStream = {
    write: (line) => void logged.push(JSON.parse(line) as Record<string, unknown>),
  };
  const relay = await openRelay(config, createLog(config, lines));

  const origin = 'http://localhost';
  return {
    relay,
    logged,
    async key(owner, more = {}) {
      return (await relay.keys.create({ kind: 'api', owner, name: 'app', ...more })).key;
    },
    async workerToken(owner, shared = false) {
      return (await relay.keys.create({ kind: 'worker', owner, name: 'tab', shared })).key;
    },
    send: async (method, where, sent) =>
      readAnswer(await answer(relay, requestOf(method, origin + where, sent))),
    open: (where, key, signal) =>
      answer(relay, requestOf('GET', origin + where, { key, ...(signal && { signal }) })),
    async close() {
      await relay.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A worker of a browser's tab that takes everything. */
export function declarationOf(more: Partial<WorkerDeclaration> = {}): WorkerDeclaration {
  return testWorker({ name: 'Chrome on Linux', ...more });
}
