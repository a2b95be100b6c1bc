import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../lib/contract/v3';
import { refuseConnection } from './reply';

/** Time limits of the HTTP server, in milliseconds. */
export const defaultTimeouts = {
  /** The head of a request. */
  headMs: 30_000,
  /** The least rate of a body, over each `idleMs`: one of a byte now and then would hold its connection for ever. */
  minBytesPerSecond: 500,
  /** Between two pieces of a body, and between two that a slow reader takes. */
  idleMs: 60_000,
  /** A connection without a request: more than the 60 s of most proxies, which reuse connections. */
  keepAliveMs: 65_000,
};
export type Timeouts = typeof defaultTimeouts;

/**
 * Refuses a request whose body pauses or is slower than the least rate. After the body an answer may take any time,
 * as long as the client reads it.
 */
export function watchBody(
  request: IncomingMessage,
  response: ServerResponse,
  { idleMs, minBytesPerSecond }: Timeouts = defaultTimeouts,
): void {
  const { socket } = request;
  const refuse = (sentence: string) => {
    if (request.complete) return;
    // The part of an answer that was sent cannot be replaced.
    if (response.headersSent) {
      request.destroy();
      return;
    }
    const error = new ApiError('REQUEST_TIMEOUT', sentence);
    response.statusCode = error.status;
    refuseConnection(socket, error, String(response.getHeader('X-Request-Id')));
    // Ends the handler, which must not take what still arrives for the whole body. (To destroy the request would
    // destroy the connection, and the answer with it.)
    request.emit('error', error);
  };
  const paused = `No part of the body arrived for ${idleMs / 1000} s.`;
  const slow = `The body arrives too slowly: the least rate is ${minBytesPerSecond} bytes a second.`;

  let counted = socket.bytesRead;
  const timer = setInterval(() => {
    const bytes = socket.bytesRead - counted;
    counted = socket.bytesRead;
    if (bytes < (minBytesPerSecond * idleMs) / 1000) refuse(slow);
  }, idleMs).unref();
  const endIdle = () => {
    if (request.complete && response.writableLength > 0) socket.destroy();
    else refuse(paused);
  };
  socket.setTimeout(idleMs);
  // Node destroys a socket whose timeout has no listener here, also while an answer is computed.
  response.on('timeout', endIdle);
  const stop = () => clearInterval(timer);
  request.once('end', stop);
  response.once('close', () => {
    stop();
    // Answered before the body was there, as a refusal may be: the rest is not waited for without end.
    if (request.complete || socket.destroyed) return;
    const close = setTimeout(() => socket.destroy(), idleMs).unref();
    // Not on the socket, which may have any number of such requests.
    request.once('close', () => clearTimeout(close));
  });
}
