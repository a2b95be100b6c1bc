import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serve, type TestServer } from '../guard/testing/server';

/** A webhook as it arrived. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The raw bytes as text: what the signature is over. */
  readonly body: string;
}

/** A server that takes webhooks. */
export interface Receiver extends TestServer {
  readonly url: string;
  readonly received: readonly Received[];
}

/**
 * Starts a receiver on loopback.
 *
 * @param answer answers one webhook; `count` includes it. 204 where absent
 */
export async function startReceiver(
  answer: (response: ServerResponse, webhook: Received, count: number) => void = (response) =>
    response.writeHead(204).end(),
): Promise<Receiver> {
  const received: Received[] = [];
  const server = await serve((request, response) => {
    void text(request).then(
      (body) => {
        const webhook = { path: request.url ?? '', headers: request.headers, body };
        received.push(webhook);
        answer(response, webhook, received.length);
      },
      // A request that was cut off has not arrived.
      () => undefined,
    );
  });
  return { ...server, url: `${server.origin}/hook`, received };
}
