import { ApiError } from '../../lib/contract/v3';
import { sameText } from '../access/keys';
import type { Relay } from '../open';
import { addressHeader, isForwarded, isLoopback } from './request';

export interface ServerStatus {
  /** Null until the relay is open. */
  relay(): Relay | null;
  stopping(): boolean;
}

const headers = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' };

/** `/healthz`, `/readyz`, `/metrics`: no answer contains data of a caller. */
export function createHealth(
  status: ServerStatus,
): Readonly<Record<string, (request: Request) => Promise<Response>>> {
  return {
    /** The process is alive. Restart it when this does not answer. */
    '/healthz': async () => Response.json({ status: 'ok' }, { headers }),

    /** Ready for requests: database and files answer, and the node is not being stopped. */
    '/readyz': async () => {
      const relay = status.relay();
      const [database, files] = await Promise.all([
        state(relay?.store.ping()),
        state(relay?.files.blobs.ping()),
      ]);
      const node = status.stopping() ? 'stopping' : relay ? 'ok' : 'starting';
      const parts = { node, database, files };
      const ready = Object.values(parts).every((part) => part === 'ok');
      const body = { status: ready ? 'ready' : 'not ready', parts };
      return Response.json(body, { status: ready ? 200 : 503, headers });
    },

    '/metrics': async (request) => {
      const relay = status.relay();
      if (!relay) throw new ApiError('SHUTTING_DOWN', 'The server is being started.');
      await authorizeMetrics(request, relay);
      const { registry } = relay.metrics;
      const type = { 'Content-Type': registry.contentType };
      return new Response(await registry.metrics(), { headers: { ...headers, ...type } });
    },
  };
}

/** `ok`, or why a part is not. */
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
async function authorizeMetrics(request: Request, relay: Relay): Promise<void> {
  const address = request.headers.get(addressHeader) ?? '';
  await relay.limits.address(address);
  if (isLoopback(address) && !isForwarded(request)) return;
  const authorization = request.headers.get('authorization');
  const token = relay.config.KINORA_METRICS_TOKEN;
  if (token && authorization && sameText(authorization, `Bearer ${token}`)) return;
  await relay.keys.authenticateAdmin(request);
}
