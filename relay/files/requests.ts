import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { ApiError } from '../../lib/contract/v3';
import { type Caller, requireScope } from '../access/caller';
import { sendJson } from '../http/reply';
import type { FilesContext } from './context';

/** The query of a request. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? '/', 'http://localhost').searchParams;
}

/** A refusal that names one field. */
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

/** Answers 200 in the envelope of the API. */
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
