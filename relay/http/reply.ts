import { randomUUID } from 'node:crypto';
import { type IncomingMessage, maxHeaderSize, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import { toApiError } from './errors';

/** Limits of reading the rest of a refused body, so that its sender can read the answer. */
const maxDrainBytes = 64 * 1024 * 1024;
const maxDrainMs = 5000;

/** CORS headers of every answer of the public API (../README.md). */
export const corsHeaders = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Upload-Offset',
} as const;

/** Further headers of the answer to a preflight request. */
export function preflightHeaders(allow: readonly string[]): Readonly<Record<string, string>> {
  return {
    'Access-Control-Allow-Methods': allow.join(', '),
    'Access-Control-Allow-Headers':
      'authorization, content-type, content-range, idempotency-key, range, x-client-name, x-client-version, x-client-os, x-request-id',
    'Access-Control-Max-Age': '86400',
  };
}

/** Sends a whole JSON answer. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = writeHead(response, status, body, headers);
  response.end(response.req.method === 'HEAD' ? undefined : text);
}

function writeHead(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Buffer {
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': text.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  return text;
}

/**
 * Answers with an error. Unexpected errors are logged. A client that has disconnected gets nothing. Where
 * an answer has begun, the connection is cut, so that the client does not take a part for the whole.
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
  const body = error.toBody(requestId);
  const headers = { ...corsHeaders, ...error.headers };
  if (request.complete || !hasBody(request)) {
    sendJson(response, error.status, body, headers);
    return;
  }
  // A connection that is closed with unread bytes is reset, and its client sees a broken pipe and no answer.
  response.write(writeHead(response, error.status, body, { ...headers, Connection: 'close' }));
  await drain(request);
  response.end();
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
  await finished(request as Readable, { signal }).catch(() => undefined);
}

function hasBody(request: IncomingMessage): boolean {
  return (
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > 0
  );
}

/** Answers what Node's parser refused: there is only the bare connection, and no response object. */
export function answerMalformed(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const [status, message, remedy] = describeParseError(error.code);
  sendBare(socket, status, new ApiError('INVALID_PARAMETER', message, { remedy }));
}

function describeParseError(
  code: string | undefined,
): readonly [status: number, message: string, remedy: string] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return [431, 'The headers are too large.', `Send at most ${maxHeaderSize} bytes of them.`];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return [408, 'The request did not arrive in time.', 'Send it again.'];
  }
  return [400, 'This is not an HTTP request.', 'Send one of HTTP/1.1.'];
}

function sendBare(socket: Duplex, status: number, error: ApiError): void {
  const requestId = randomUUID();
  const body = JSON.stringify({ ...error.toBody(requestId), code: status });
  const headers = Object.entries(error.headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      ...headers,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
