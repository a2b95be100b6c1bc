import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Relay } from '../open';
import { healthRoutes, type Standing } from './health';
import type { Pages } from './next';
import { answerMalformed, corsHeaders, refuseUpgrade, sendError, sendPreflight } from './reply';
import { checkMethod, checkTarget, introduce, withoutNextHeaders } from './request';
import { createNodeRouter, type Match, type NodeTarget } from './router';
import { type Patience, setTimeouts, patience as usualPatience, watchBody } from './timeouts';

/** What an HTTP server is made of. Relay and pages may come later: requests that need them wait. */
export interface ServerParts {
  readonly config: Config;
  readonly log: Logger;
  /** Asked by the first request that needs it, which may be what opens it. */
  readonly relay: () => Promise<Relay>;
  readonly pages: Promise<Pages>;
  readonly standing: Standing;
  readonly patience?: Patience;
}

/** An HTTP server, with what is under way on it. */
export interface RequestServer {
  readonly server: Server;
  /** Answers that have not ended. */
  readonly open: number;
  /** Resolves once no answer is under way. */
  quiet(): Promise<void>;
  /** Cuts upgraded connections, which the server itself forgets. */
  cutUpgrades(): void;
}

/**
 * The one HTTP server of a node. Large bodies and the health checks are answered here;
 * everything else goes to the pages (v3-api.md §5 says why).
 */
export function createRequestServer(parts: ServerParts): RequestServer {
  const { config, log, standing, patience = usualPatience } = parts;
  const health = createNodeRouter(healthRoutes(standing));
  let relayRouter: ReturnType<typeof openRouter> | null = null;
  /** Why a relay did not open is told by whoever opens it; callers are only sent away. */
  const openRouter = () =>
    parts.relay().then(
      (relay) => createNodeRouter(relay.files.routes),
      () => null,
    );

  const underWay = new Set<ServerResponse>();
  const waiters: (() => void)[] = [];
  const upgraded = new Set<Duplex>();

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { requestId, address } = introduce(request, config);
    response.setHeader('X-Request-Id', requestId);
    // The client is to come back to another node.
    if (standing.stopping) response.shouldKeepAlive = false;
    try {
      checkTarget(request);
      const path = pathOf(request);
      const method = request.method ?? 'GET';
      const own = health(method, path);
      const match = own.kind === 'nothing' ? await ofRelay(method, path) : own;
      if (match.kind === 'nothing') {
        watchBody(request, response, 'ordinary', patience);
        const pages = await parts.pages;
        checkMethod(method, path, pages);
        withoutNextHeaders(request, path);
        await pages.handle(request, response);
        return;
      }
      watchBody(request, response, 'upload', patience);
      const name = match.kind === 'found' ? match.target.name : method;
      if (path !== '/healthz' && path !== '/readyz') {
        note(request, response, name);
        await standing.relay()?.limits.address(address);
      }
      await serve(match, request, response);
    } catch (thrown) {
      await sendError(request, response, thrown, { log, requestId });
    }
  }

  /** What the relay answers without Next. Pages need no relay, and do not wait for it. */
  async function ofRelay(method: string, path: string): Promise<Match<NodeTarget>> {
    if (!path.startsWith('/api/') && !path.startsWith('/files/')) return { kind: 'nothing' };
    relayRouter ??= openRouter();
    const router = await relayRouter;
    if (!router) throw new ApiError('SHUTTING_DOWN');
    return router(method, path);
  }

  /** Tells metrics and log about an answer that does not go through the API's own code. */
  function note(request: IncomingMessage, response: ServerResponse, name: string): void {
    const startedAt = performance.now();
    const requestId = response.getHeader('X-Request-Id');
    response.once('close', () => {
      const seconds = (performance.now() - startedAt) / 1000;
      const status = response.statusCode;
      standing.relay()?.metrics.request(name, status, seconds);
      // The template, not the path: paths and queries carry signatures and leases.
      log.info(
        {
          request_id: requestId,
          method: request.method,
          operation: name,
          status,
          ms: Math.round(seconds * 1000),
        },
        response.writableFinished ? 'request' : 'request cut off',
      );
    });
  }

  /** Next's tools in development are the only ones that upgrade a connection. */
  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    introduce(request, config);
    // An error of a cut connection must not end the process.
    socket.on('error', () => socket.destroy());
    upgraded.add(socket);
    socket.once('close', () => upgraded.delete(socket));
    pathOf(request);
    const pages = await parts.pages;
    if (pages.upgrade) pages.upgrade(request, socket, head);
    else refuseUpgrade(socket, new ApiError('NOT_FOUND'));
  }

  const server = createServer((request, response) => {
    underWay.add(response);
    response.once('close', () => {
      underWay.delete(response);
      if (underWay.size === 0) for (const waiter of waiters.splice(0)) waiter();
    });
    // Without a listener an error of a cut connection would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    void answer(request, response);
  });
  server.on('upgrade', (request, socket, head) => {
    upgrade(request, socket, head).catch((error: unknown) => {
      if (error instanceof ApiError && error.status < 500) {
        refuseUpgrade(socket, error);
        return;
      }
      log.error({ err: error }, 'an upgrade failed');
      socket.destroy();
    });
  });
  server.on('clientError', answerMalformed);
  setTimeouts(server, patience);

  return {
    server,
    get open() {
      return underWay.size;
    },
    quiet: () =>
      underWay.size === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            waiters.push(resolve);
          }),
    cutUpgrades() {
      for (const socket of upgraded) socket.destroy();
    },
  };
}

async function serve(
  match: Exclude<Match<NodeTarget>, { kind: 'nothing' }>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (match.kind === 'found') {
    // Files that are read say themselves who may read them.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      for (const [name, value] of Object.entries(corsHeaders)) response.setHeader(name, value);
    }
    await match.target.handler(request, response, match.params);
    return;
  }
  if (request.method === 'OPTIONS') {
    sendPreflight(response, match.allow);
    return;
  }
  throw new ApiError('METHOD_NOT_ALLOWED', undefined, {
    headers: { Allow: match.allow.join(', ') },
  });
}

/**
 * The path of a request, percent-encoded as it came.
 *
 * @throws ApiError `INVALID_PARAMETER` for one that cannot be decoded: nothing behind may trip over it
 */
function pathOf(request: IncomingMessage): string {
  const [path = '/'] = (request.url ?? '/').split('?');
  try {
    decodeURIComponent(path);
  } catch (cause) {
    throw new ApiError('INVALID_PARAMETER', 'The address is not percent-encoded as it should be.', {
      cause,
      remedy: 'Write a percent sign as `%25`.',
    });
  }
  return path;
}
