import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import { type Caller, requireScope } from '../access/caller';
import type { Keys } from '../access/keys';
import type { Limits } from '../access/limits';
import type { Config } from '../config';
import type { Guard } from '../guard/guard';
import { sendJson } from '../http/reply';
import type { NodeHandler } from '../http/router';
import type { Jobs } from '../jobs';
import type { Store } from '../store/store';
import type { Storage } from './blobs';
import type { Links } from './links';
import type { Space } from './space';
import type { UploadRows } from './uploads';

/** What {@link createFiles} is made from. */
export interface FilesDependencies {
  readonly config: Config;
  readonly links: Links;
  readonly store: Pick<Store, 'db' | 'listen'>;
  readonly keys: Pick<Keys, 'authenticate' | 'authenticateAdmin'>;
  readonly limits: Pick<Limits, 'key'>;
  readonly guard: Guard;
  readonly jobs: Jobs;
  readonly space: Space;
  readonly log: Logger;
}

/** What the handlers of this folder work with. */
export interface FilesContext extends FilesDependencies, Storage {
  readonly rows: UploadRows;
}

/** A handler of the Node server, given what this folder works with. */
export type FileHandler = (
  context: FilesContext,
  ...request: Parameters<NodeHandler>
) => ReturnType<NodeHandler>;

export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? '/', 'http://localhost').searchParams;
}

export function invalidField(
  field: string,
  message: string,
  options: ErrorOptions & { code?: ApiError['code']; remedy?: string } = {},
): ApiError {
  const { code = 'INVALID_PARAMETER', ...rest } = options;
  return new ApiError(code, message, { details: [{ field, message }], ...rest });
}

/**
 * The body of a request, piece by piece.
 *
 * @throws ApiError `INVALID_PARAMETER` when the caller breaks off
 */
export async function* bodyOf(request: Readable): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of request) yield piece;
  } catch (cause) {
    throw new ApiError('INVALID_PARAMETER', 'The body ended too early.', { cause });
  }
}

/** The announced length of a body; null where there is none. */
export function lengthOf(request: IncomingMessage): number | null {
  const text = request.headers['content-length'] ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** The type of a body without its parameters, in small letters. */
export function typeOf(request: IncomingMessage): string {
  return (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}

export function sendData(response: ServerResponse, data: unknown): void {
  sendJson(response, 200, { code: 200, message: 'success', data });
}

/**
 * Authentication of uploads: the key, its scope, and its limit.
 *
 * @returns the caller; the headers of its limit are set on the response
 * @throws ApiError `UNAUTHORIZED`, `FORBIDDEN`, `RATE_LIMITED`
 */
export async function authenticate(
  { keys, limits }: Pick<FilesContext, 'keys' | 'limits'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Caller> {
  const caller = await keys.authenticate(request.headers.authorization ?? null, 'api');
  requireScope(caller, 'uploads:write');
  response.setHeaders(new Headers(await limits.key(caller, 'read')));
  return caller;
}
