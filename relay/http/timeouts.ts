import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** How long the server waits for what, in milliseconds. */
export interface Patience {
  /** The head of a request. */
  readonly headMs: number;
  /** The whole body of an ordinary request. */
  readonly bodyMs: number;
  /** Between two pieces of an upload, and between two that a slow reader takes. */
  readonly idleMs: number;
  /** A connection without a request: longer than the 60 s of the usual proxies, which reuse them. */
  readonly keepAliveMs: number;
}

export const patience: Patience = {
  headMs: 30_000,
  bodyMs: 60_000,
  idleMs: 60_000,
  keepAliveMs: 65_000,
};

/**
 * Node's own limit for a whole request is 300 s and cuts slow uploads (v3-api.md §5); it is off, and
 * {@link watchBody} takes its place with a limit for each kind of route.
 */
export function setTimeouts(server: Server, { headMs, keepAliveMs }: Patience): void {
  server.requestTimeout = 0;
  server.headersTimeout = headMs;
  server.keepAliveTimeout = keepAliveMs;
}

/**
 * Ends a request whose body does not come: an upload that stands still, any other that takes too
 * long as a whole. Once the body is there, an answer may take as long as it needs, as long as the
 * other end reads it.
 */
export function watchBody(
  request: IncomingMessage,
  response: ServerResponse,
  kind: 'upload' | 'ordinary',
  { bodyMs, idleMs }: Patience = patience,
): void {
  const { socket } = request;
  const late = () => {
    if (!request.complete) request.destroy();
  };
  const whole = kind === 'ordinary' ? setTimeout(late, bodyMs).unref() : undefined;
  // No traffic at all: the upload stands still, or nobody takes what is being sent.
  const still = () => {
    if (!request.complete || response.writableLength > 0) socket.destroy();
  };
  socket.setTimeout(idleMs, still);
  response.once('close', () => {
    clearTimeout(whole);
    socket.setTimeout(0, still);
    socket.off('timeout', still);
  });
  request.once('end', () => clearTimeout(whole));
}
