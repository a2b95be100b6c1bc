import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DestinationStream } from 'pino';
import type { Scope, SubmitInput, WorkerDeclaration } from '../../lib/contract/v3';
import { readConfig } from '../config';
import { answer } from '../http/answer';
import { createLog } from '../observe/log';
import { openRelay, type RunningRelay } from '../open';
import { testWorker } from './jobs';
import { pgliteTemplate } from './pglite';

/** A PNG of one pixel, as a data URI: the smallest image that is one. */
export const onePixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';

/** A submission that needs nothing else. */
export const submission: SubmitInput = { image: onePixel, prompt: 'a boat', seed: 7 };

/** What came back, read whole. */
export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** The JSON body; null where there is none. */
  readonly json: {
    readonly code: number;
    readonly message: string;
    readonly error_code?: string;
    readonly request_id?: string;
    readonly details?: readonly { field: string; message: string }[];
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
    readonly data?: any;
  };
}

/** A whole node without a port: requests go straight to the API's code. */
export interface TestApi {
  readonly relay: RunningRelay;
  /** Lines of the log, parsed. */
  readonly logged: Record<string, unknown>[];
  key(owner: string, more?: { scopes?: Scope[]; shared?: boolean }): Promise<string>;
  workerToken(owner: string, shared?: boolean): Promise<string>;
  /** @param body an object is sent as JSON, a text as it is */
  send(
    method: string,
    path: string,
    options?: { key?: string; body?: unknown; headers?: Record<string, string> },
  ): Promise<Answered>;
  /** The same without reading the answer. */
  open(path: string, key: string, signal?: AbortSignal): Promise<Response>;
  close(): Promise<void>;
}

/** Opens a node in a folder of its own. Its background work does not run. */
export async function openTestApi(settings: Record<string, string> = {}): Promise<TestApi> {
  const folder = await mkdtemp(path.join(tmpdir(), 'kinora-api-'));
  await cp(await pgliteTemplate(), folder, { recursive: true });
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

  const request = (
    method: string,
    where: string,
    { key, body, headers = {} }: { key?: string; body?: unknown; headers?: Record<string, string> },
    signal?: AbortSignal,
  ) =>
    new Request(`http://localhost${where}`, {
      method,
      ...(signal && { signal }),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      headers: {
        ...(key !== undefined && { Authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
    });

  return {
    relay,
    logged,
    async key(owner, more = {}) {
      return (await relay.keys.create({ kind: 'api', owner, name: 'app', ...more })).key;
    },
    async workerToken(owner, shared = false) {
      return (await relay.keys.create({ kind: 'worker', owner, name: 'tab', shared })).key;
    },
    async send(method, where, options = {}) {
      const response = await answer(relay, request(method, where, options));
      const text = await response.text();
      const json = JSON.parse(text || 'null') as Answered['json'];
      return { status: response.status, headers: response.headers, json };
    },
    open: (where, key, signal) => answer(relay, request('GET', where, { key }, signal)),
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
