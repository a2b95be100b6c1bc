import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../lib/contract/v3';
import { sameText } from '../access/format';
import type { Relay } from '../open';
import { sendJson } from './reply';
import { callerAddress, headersOf, isForwarded, isLoopback } from './request';
import type { NodeHandler } from './router';

export interface ServerStatus {
  /** Null until the relay is open. */
  relay(): Relay | null;
  stopping(): boolean;
}

/** `/healthz`, `/readyz`, `/metrics`: no answer contains data of a caller. */
export function healthRoutes(status: ServerStatus): Readonly<Record<string, NodeHandler>> {
  return {
    /** The process is alive. Restart it when this does not answer. */
    'GET /healthz': async (_request, response) => sendJson(response, 200, { status: 'ok' }),

    /** Ready for requests: database and files answer, and the node is not being stopped. */
    'GET /readyz': async (_request, response) => {
      const { ready, parts } = await readiness(status);
      sendJson(response, ready ? 200 : 503, { status: ready ? 'ready' : 'not ready', parts });
    },

    'GET /metrics': async (request, response) => {
      const relay = status.relay();
      if (!relay) throw new ApiError('SHUTTING_DOWN', 'The server is being started.');
      await authorizeMetrics(request, relay);
      const { registry } = relay.metrics;
      const text = await registry.metrics();
      response.writeHead(200, {
        'Content-Type': registry.contentType,
        'Content-Length': Buffer.byteLength(text),
        'Cache-Control': 'no-store',
      });
      response.end(request.method === 'HEAD' ? undefined : text);
    },
  };
}

/** Checks every part that a node needs: `ok`, or why it is not. */
async function readiness(status: ServerStatus) {
  const relay = status.relay();
  const [database, files] = await Promise.all([
    state(relay?.store.ping()),
    state(relay?.files.blobs.ping()),
  ]);
  const node = status.stopping() ? 'stopping' : relay ? 'ok' : 'starting';
  const parts = { node, database, files };
  return { ready: Object.values(parts).every((part) => part === 'ok'), parts };
}

async function state(ping: Promise<void> | undefined): Promise<string> {
  if (!ping) return 'not open';
  return await ping.then(
    () => 'ok',
    () => 'down',
  );
}

/**
 * Metrics are for this machine, for holders of `KINORA_METRICS_TOKEN`, and for admins. A request that a
 * proxy on this machine passed on did not come from this machine.
 *
 * @throws ApiError `UNAUTHORIZED`, `FORBIDDEN`
 */
async function authorizeMetrics(request: IncomingMessage, relay: Relay): Promise<void> {
  if (isLoopback(callerAddress(request)) && !isForwarded(request)) return;
  const { authorization } = request.headers;
  const token = relay.config.KINORA_METRICS_TOKEN;
  if (token && authorization && sameText(authorization, `Bearer ${token}`)) return;
  await relay.keys.authenticateAdmin({ method: 'GET', headers: headersOf(request) });
}
