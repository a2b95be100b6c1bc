import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError } from '../../lib/contract/v3';
import { sameText } from '../access/format';
import type { Relay } from '../open';
import { sendJson } from './reply';
import { addressHeader, isForwarded, isLoopback } from './request';
import type { NodeHandler } from './router';

/** How a node stands, for those who ask without a key. */
export interface Standing {
  /** Null while the node is being started. */
  relay(): Relay | null;
  readonly stopping: boolean;
}

/** What a readiness check found. */
export interface Readiness {
  readonly ready: boolean;
  /** Each part: `ok`, or why it is not. */
  readonly parts: Readonly<Record<'node' | 'database' | 'files', string>>;
}

/** `/healthz`, `/readyz`, `/metrics`: nothing of a caller's is told here. */
export function healthRoutes(standing: Standing): Readonly<Record<string, NodeHandler>> {
  return {
    /** The process lives. A restart is the remedy when this does not answer. */
    'GET /healthz': async (_request, response) => sendJson(response, 200, { status: 'ok' }),

    /** Traffic may come: database and files answer, and the node is not being stopped. */
    'GET /readyz': async (_request, response) => {
      const { ready, parts } = await readiness(standing);
      sendJson(response, ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', parts });
    },

    'GET /metrics': async (request, response) => {
      const relay = standing.relay();
      if (!relay) throw new ApiError('SHUTTING_DOWN', 'The server is being started.');
      await mayReadMetrics(request, relay);
      await sendMetrics(response, relay);
    },
  };
}

/** Asks every part that a node cannot work without. */
export async function readiness(standing: Standing): Promise<Readiness> {
  const relay = standing.relay();
  const [database, files] = await Promise.all([
    state(relay && (() => relay.store.ping())),
    state(relay && (() => relay.files.blobs.ping())),
  ]);
  const node = standing.stopping ? 'stopping' : relay ? 'ok' : 'starting';
  const parts = { node, database, files };
  return { ready: Object.values(parts).every((part) => part === 'ok'), parts };
}

async function state(ping: (() => Promise<void>) | null): Promise<string> {
  if (!ping) return 'not open';
  return await ping().then(
    () => 'ok',
    () => 'down',
  );
}

/**
 * The numbers are for this machine, for whoever has `KINORA_METRICS_TOKEN`, and for admins. A request
 * that a proxy on this machine passed on did not come from this machine.
 */
async function mayReadMetrics(request: IncomingMessage, relay: Relay): Promise<void> {
  const address = request.headers[addressHeader];
  if (typeof address === 'string' && isLoopback(address) && !isForwarded(request)) return;
  const { authorization, cookie } = request.headers;
  const token = relay.config.KINORA_METRICS_TOKEN;
  if (token && authorization && sameText(authorization, `Bearer ${token}`)) return;
  await relay.keys.authenticateAdmin({
    authorization: authorization ?? null,
    cookie: cookie ?? null,
    method: request.method ?? 'GET',
    origin: request.headers.origin ?? null,
    host: request.headers.host ?? null,
  });
}

async function sendMetrics(response: ServerResponse, relay: Relay): Promise<void> {
  const { registry } = relay.metrics;
  const text = await registry.metrics();
  response.writeHead(200, {
    'Content-Type': registry.contentType,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
  });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}
