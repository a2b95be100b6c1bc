import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Time limits of the HTTP server, in milliseconds. */
export interface Timeouts {
  /** The head of a request. */
  readonly headMs: number;
  /** The whole body of an ordinary request. */
  readonly bodyMs: number;
  /** Between two pieces of an upload, and between two that a slow reader takes. */
  readonly idleMs: number;
  /** A connection without a request: more than the 60 s of most proxies, which reuse connections. */
  readonly keepAliveMs: number;
}

export const defaultTimeouts: Timeouts = {
  headMs: 30_000,
  bodyMs: 60_000,
  idleMs: 60_000,
  keepAliveMs: 65_000,
};

/**
 * Node's own limit for a whole request is 300 s and would cut slow uploads (`server.requestTimeout`). It is
 * off, and {@link watchBody} has a limit for each kind of route.
 */
export function setTimeouts(server: Server, { headMs, keepAliveMs }: Timeouts): void {
  server.requestTimeout = 0;
  server.headersTimeout = headMs;
  server.keepAliveTimeout = keepAliveMs;
}

/**
 * Ends a request whose body does not come: an upload without traffic, any other request that takes too
 * long as a whole. After the body an answer may take any time, as long as the client reads it.
 */
export function watchBody(
  request: IncomingMessage,
  response: ServerResponse,
  kind: 'upload' | 'ordinary',
  { bodyMs, idleMs }: Timeouts = defaultTimeouts,
): void {
  const { socket } = request;
  const endLate = () => {
    if (!request.complete) request.destroy();
  };
  const timer = kind === 'ordinary' ? setTimeout(endLate, bodyMs).unref() : undefined;
  const endIdle = () => {
    if (!request.complete || response.writableLength > 0) socket.destroy();
  };
  socket.setTimeout(idleMs, endIdle);
  response.once('close', () => {
    clearTimeout(timer);
    socket.setTimeout(0, endIdle);
    socket.off('timeout', endIdle);
  });
  request.once('end', () => clearTimeout(timer));
}
