import { randomUUID } from 'node:crypto';
import { maxHeaderSize, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError } from '../../lib/contract/v3';

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
