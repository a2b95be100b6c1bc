import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { ApiError } from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import type { Keys } from '../access/keys';
import type { Limits } from '../access/limits';
import { sendJson } from '../http/reply';
import { addressHeader } from '../http/request';

/** The query of a request. */
export function queryOf(request: IncomingMessage): URLSearchParams {
  return new URL(request.url ?? '/', 'http://localhost').searchParams;
}

/** A refusal that names one field. */
export function invalidField(
  field: string,
  message: string,
  options: ErrorOptions & { code?: 'INVALID_PARAMETER' | 'NOT_FOUND' | 'INVALID_IMAGE' } = {},
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

/** Authentication of requests that do not pass through Next. */
export interface Access {
  /** @throws ApiError `UNAUTHORIZED`, `FORBIDDEN`, `RATE_LIMITED` */
  api(request: IncomingMessage, response: ServerResponse): Promise<Caller>;
  /** @throws ApiError `UNAUTHORIZED` */
  worker(request: IncomingMessage): Promise<Caller>;
}

/** Checks keys and limits for uploads of callers and of workers. */
export function createAccess({
  keys,
  limits,
}: {
  keys: Pick<Keys, 'authenticate'>;
  limits: Pick<Limits, 'badKey' | 'key'>;
}): Access {
  const authenticate = async (request: IncomingMessage, kind: 'api' | 'worker') => {
    try {
      return await keys.authenticate(request.headers.authorization ?? null, kind);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === 'UNAUTHORIZED') {
        await limits.badKey(addressOf(request));
      }
      throw thrown;
    }
  };
  return {
    async api(request, response) {
      const caller = await authenticate(request, 'api');
      const scopes: readonly string[] = caller.scopes;
      if (!scopes.includes('uploads:write')) {
        throw new ApiError('FORBIDDEN', undefined, {
          details: [{ field: 'Authorization', message: 'needs the scope uploads:write' }],
        });
      }
      const headers = await limits.key(caller, 'read');
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      return caller;
    },
    worker: (request) => authenticate(request, 'worker'),
  };
}

/** The caller's address, which the server sets as a header in front of every handler. */
function addressOf(request: IncomingMessage): string {
  const address = request.headers[addressHeader];
  return typeof address === 'string' ? address : (request.socket.remoteAddress ?? '');
}
