import { randomUUID } from 'node:crypto';
import { type IncomingMessage, maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import { toApiError } from './errors';

/**
 * Answers what was no HTTP request, or never became one. There is no response object to write to:
 * Node hands over the bare connection.
 */
export function answerMalformed(error: Error & { code?: string }, socket: Duplex): void {
  // A client that went away is told nothing.
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, sentence, remedy] = told(error.code);
  sendBare(socket, status, new ApiError('INVALID_PARAMETER', sentence, { remedy }));
}

/** Refuses to upgrade a connection. */
export function refuseUpgrade(socket: Duplex, refusal: ApiError): void {
  sendBare(socket, refusal.status, refusal);
}

/** What Node's parser says, as a caller is told it. */
function told(
  code: string | undefined,
): readonly [status: number, sentence: string, remedy: string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return [431, 'The headers are too large.', `Send at most ${maxHeaderSize} bytes of them.`];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return [408, 'The request did not arrive in time.', 'Send it again.'];
  }
  return [400, 'This is not an HTTP request.', 'Send one of HTTP/1.1.'];
}

function sendBare(socket: Duplex, status: number, refusal: ApiError): void {
  const requestId = randomUUID();
  const body = JSON.stringify({ ...refusal.toBody(requestId), code: status });
  const more = Object.entries(refusal.headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      ...more,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

/** Bytes of an unwanted body that are read so that its sender hears the answer, and for how long. */
const lingerBytes = 64 * 1024 * 1024;
const lingerMs = 5000;

/** Anybody may call from any page: keys travel in a header, never in cookies (v3-api.md, rule 8). */
export const corsHeaders = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Upload-Offset',
} as const;

/** What a browser may send across origins. */
const preflightHeaders = {
  'Access-Control-Allow-Headers':
    'authorization, content-type, content-range, idempotency-key, range, x-client-name, x-client-version, x-client-os, x-request-id',
  'Access-Control-Max-Age': '86400',
} as const;

/** Sends a whole JSON answer. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = Buffer.from(JSON.stringify(body));
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': text.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

/** Answers a preflight for a path of ours. */
export function sendPreflight(response: ServerResponse, allow: readonly string[]): void {
  response.writeHead(204, {
    ...corsHeaders,
    ...preflightHeaders,
    'Access-Control-Allow-Methods': allow.join(', '),
  });
  response.end();
}

/**
 * Answers with what went wrong. Refusals go out as they are; what is our own fault is logged. A client that has gone gets nothing, and is no error. Where an answer has begun, the
 * connection is cut: the client must not take half of it for the whole.
 */
export async function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  thrown: unknown,
  { log, requestId }: { log: Logger; requestId: string },
): Promise<void> {
  if (response.destroyed || request.socket.destroyed) return;
  const error = toApiError(thrown);
  if (error.status >= 500) log.error({ err: thrown, request_id: requestId }, 'a request failed');
  if (response.headersSent) {
    if (!response.writableEnded) response.destroy();
    return;
  }
  await stopBody(request, response, error.toBody(requestId), error);
}

/**
 * Sends the whole answer first and then reads on for a while before the connection ends: closing with
 * unread bytes would reset it, and the client would see a broken pipe in place of the answer.
 */
async function stopBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
  error: ApiError,
): Promise<void> {
  const headers = { ...corsHeaders, ...error.headers };
  if (request.complete || !hasBody(request)) {
    sendJson(response, error.status, body, headers);
    return;
  }
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(error.status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': text.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  });
  response.write(text);
  await drain(request);
  response.end();
}

/** Reads and drops what still comes, within bounds. Also resolves when the client goes. */
async function drain(request: IncomingMessage): Promise<void> {
  let bytes = 0;
  const enough = AbortSignal.timeout(lingerMs);
  const stop = new AbortController();
  request.unpipe();
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > lingerBytes) stop.abort();
  });
  request.resume();
  await finished(request as Readable, { signal: AbortSignal.any([enough, stop.signal]) }).catch(
    () => undefined,
  );
}

function hasBody(request: IncomingMessage): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > 0
  );
}
