import { randomUUID } from 'node:crypto';
import { type IncomingMessage, maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Limits } from '../access/limits';
import { causesOf, storageDown } from '../store/store';

/** Limits of reading the rest of a refused body, so that its sender can read the answer. */
const maxDrainBytes = 64 * 1024 * 1024;
const maxDrainMs = 5000;

/** CORS headers of every answer of the public API (../README.md). */
export const corsHeaders = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset',
} as const;

/** Further headers of the answer to a preflight request. */
export function preflightHeaders(allow: readonly string[]): Readonly<Record<string, string>> {
  return {
    'Access-Control-Allow-Methods': allow.join(', '),
    'Access-Control-Allow-Headers':
      'authorization, content-type, idempotency-key, range, x-client-name, x-client-version, x-client-os, x-request-id',
    'Access-Control-Max-Age': '86400',
  };
}

export function methodNotAllowed(allow: readonly string[]): ApiError {
  return new ApiError('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: allow.join(', ') } });
}

/**
 * The refusal for an error. A storage that does not answer is `STORAGE_DOWN`; a value that the database cannot
 * store (SQLSTATE class 22) came from the caller and is never a 5xx; any other error is `INTERNAL`.
 */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const down = storageDown(thrown);
  if (down !== null) return down;
  const codes = [...causesOf(thrown)].map((error) => ('code' in error ? String(error.code) : ''));
  if (codes.some((code) => /^22\w{3}$/.test(code))) {
    return new ApiError('INVALID_PARAMETER', 'A value cannot be stored.', { cause: thrown });
  }
  return new ApiError('INTERNAL', undefined, { cause: thrown });
}

/** The envelope of an answer that is no refusal. */
export function success(data: unknown, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json({ code: 200, message: 'success', data }, { headers });
}

/** The parts of a request that its refusal and the log name. */
export interface RequestContext {
  readonly requestId: string;
  readonly address: string;
  /** The name of its route. */
  readonly operation?: string;
}

/**
 * The answer to a request that failed. A wrong key counts for its address, which may be refused for that. A refusal
 * is in the request's log line; anything else is a fault of the server or its storage, and is logged.
 */
export async function refuse(
  thrown: unknown,
  { requestId, address, operation }: RequestContext,
  log: Logger,
  limits?: Pick<Limits, 'badKey'>,
): Promise<Response> {
  let error = thrown;
  if (limits && thrown instanceof ApiError && thrown.code === 'UNAUTHORIZED') {
    await limits.badKey(address).catch((tooMany: unknown) => {
      error = tooMany;
    });
  }
  const refused = toApiError(error);
  const { status, code, headers } = refused;
  if (code !== 'SHUTTING_DOWN' && (status >= 500 || !(error instanceof ApiError))) {
    log.error({ request_id: requestId, operation, err: error }, code);
  }
  return Response.json(refused.toBody(requestId), { status, headers });
}

/** Types of answers that nearly always are one piece. */
const wholeTypes = /^(application\/json|text\/html|text\/plain)/;

/** A body that is read from a stream. */
export function streamed(body: Readable): BodyInit {
  return Readable.toWeb(body) as BodyInit & ReturnType<typeof Readable.toWeb>;
}

/**
 * Sends an answer. A client that has disconnected gets nothing. Where its body fails on the way, the connection is
 * cut, so that the client does not take a part for the whole.
 */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Response,
): Promise<void> {
  if (response.destroyed || response.socket?.writable !== true) {
    await answer.body?.cancel();
    return;
  }
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) {
    if (name === 'set-cookie') response.appendHeader(name, value);
    else response.setHeader(name, value);
  }
  if (!request.complete && hasBody(request)) {
    // A connection that is closed with unread bytes is reset, and its client sees a broken pipe and no answer.
    const text = await answer.text();
    response.setHeader('Connection', 'close').setHeader('Content-Length', Buffer.byteLength(text));
    response.write(text);
    await drain(request);
    response.end();
    return;
  }
  if (answer.body === null) {
    response.end();
    return;
  }
  const body = answer.body as NodeReadableStream<Uint8Array>;
  if (wholeTypes.test(answer.headers.get('content-type') ?? '')) {
    const reader = body.getReader();
    const first = await reader.read();
    const second = first.done ? first : await reader.read();
    if (second.done) {
      // Sent faster than a stream, and with its length.
      response.end(first.value);
      return;
    }
    response.write(first.value);
    response.write(second.value);
    reader.releaseLock();
  }
  await pipeline(Readable.fromWeb(body), response).catch(() => undefined);
}

/** Reads and drops the rest of a body, within limits. Also resolves when the client disconnects. */
async function drain(request: IncomingMessage): Promise<void> {
  let bytes = 0;
  const stop = new AbortController();
  request.unpipe();
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > maxDrainBytes) stop.abort();
  });
  request.resume();
  const signal = AbortSignal.any([AbortSignal.timeout(maxDrainMs), stop.signal]);
  // The answer is sent in any case.
  await finished(request, { signal }).catch(() => undefined);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Connections that were refused and whose rest is being dropped. */
const refusedConnections = new WeakSet<Duplex>();

/**
 * Answers what Node's parser refused: there is only the bare connection, and no response object. The parser reports
 * each further piece of such a request too; those are dropped.
 */
export function answerMalformed(
  error: Error & { code?: string; rawPacket?: Buffer },
  socket: Duplex,
): void {
  if (refusedConnections.has(socket)) return;
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  refuseConnection(socket, describeParseError(error));
}

/** A request line with a method that Node's parser does not know (RFC 9110, 9.1; 9112, 3). */
const unknownMethod = /^[\w!#$%&'*+.^`|~-]+ \S+ HTTP\/1\.[01]\r?\n/;

function describeParseError({ code, rawPacket }: { code?: string; rawPacket?: Buffer }): ApiError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const remedy = `Send at most ${maxHeaderSize.toLocaleString('en')} bytes of them.`;
    return new ApiError('HEADERS_TOO_LARGE', undefined, { remedy });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('REQUEST_TIMEOUT');
  if (code === 'HPE_INVALID_METHOD' && unknownMethod.test(rawPacket?.toString('latin1') ?? '')) {
    return new ApiError('METHOD_UNKNOWN');
  }
  return new ApiError('INVALID_PARAMETER', 'This is not an HTTP request.', {
    remedy: 'Send one of HTTP/1.1.',
  });
}

/**
 * Answers on the bare connection and ends it: for requests that never reach a handler, or whose handler waits for a
 * body that does not come. Bytes that still arrive are dropped for a while: a connection that is closed with unread
 * bytes is reset, and its client sees no answer.
 */
export function refuseConnection(
  socket: Duplex,
  error: ApiError,
  requestId: string = randomUUID(),
): void {
  if (!socket.writable) return;
  refusedConnections.add(socket);
  const body = JSON.stringify(error.toBody(requestId));
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': requestId,
    ...corsHeaders,
    ...error.headers,
    Connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const status = `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}`;
  socket.end([status, ...lines, '', body].join('\r\n'));
  const timer = setTimeout(() => socket.destroy(), maxDrainMs).unref();
  socket.once('close', () => clearTimeout(timer));
}
