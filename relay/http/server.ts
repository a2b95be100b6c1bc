import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { ApiError, endpoints } from '../../lib/contract/v3';
import type { Config } from '../config';
import { once } from '../loop';
import type { Relay } from '../open';
import { healthRoutes, type ServerStatus } from './health';
import type { Pages } from './next';
import {
  answerMalformed,
  corsHeaders,
  countBadKey,
  methodNotAllowed,
  preflightHeaders,
  refuseConnection,
  sendError,
} from './reply';
import {
  apiMethods,
  assignContext,
  checkMethod,
  correctSlashes,
  pathOf,
  publicDocument,
  removeNextHeaders,
} from './request';
import { createNodeRouter, findOperation, type Match, type NodeTarget } from './router';
import { defaultTimeouts, setTimeouts, type Timeouts, watchBody } from './timeouts';

/** Paths whose routes the relay may have; the others are pages and their files. */
const relayPaths = /^\/(api\/|files\/|s\/|oembed$)/;

/** What an HTTP server works with. Requests wait for a relay or pages that are not open yet. */
export interface ServerDependencies {
  readonly config: Config;
  readonly log: Logger;
  readonly relay: () => Promise<Relay>;
  readonly pages: () => Promise<Pages>;
  readonly status: ServerStatus;
  readonly timeouts?: Timeouts;
}

/**
 * The one HTTP server of a node. It answers large bodies, health checks and frequent reads itself;
 * everything else goes to the pages (../README.md says why).
 */
export function createRequestServer(dependencies: ServerDependencies) {
  const { config, log, status, timeouts = defaultTimeouts } = dependencies;
  const health = createNodeRouter(healthRoutes(status));
  // The error of a relay that does not open is reported by the caller that opens it; requests get 503.
  const relayRouter = once(() =>
    dependencies.relay().then(
      (relay) => createNodeRouter(relay.files.routes),
      () => null,
    ),
  );

  const openResponses = new Set<ServerResponse>();
  const idleWaiters: (() => void)[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { requestId, address } = assignContext(request, config);
    response.setHeader('X-Request-Id', requestId);
    // The client connects again, to another node.
    if (status.stopping()) response.shouldKeepAlive = false;
    try {
      correctSlashes(request);
      const path = pathOf(request);
      const method = request.method ?? 'GET';
      const own = health(method, path);
      const match = own.kind === 'nothing' ? await matchRelay(method, path) : own;
      if (match.kind === 'nothing') {
        watchBody(request, response, 'ordinary', timeouts);
        if (path === publicDocument) {
          response.setHeaders(new Headers(corsHeaders));
          if (method === 'OPTIONS') {
            response.writeHead(204, preflightHeaders(['GET', 'HEAD', 'OPTIONS'])).end();
            return;
          }
        }
        const route = findOperation(method, path);
        if (route.kind === 'found' && 'frequent' in endpoints[route.target]) {
          // Loaded late: pages do not need it.
          const { answerDirectly } = await import('./direct');
          await answerDirectly(await dependencies.relay(), request, response);
          return;
        }
        const pages = await dependencies.pages();
        checkMethod(method, path, pages);
        removeNextHeaders(request, path);
        await pages.handle(request, response);
        return;
      }
      watchBody(request, response, 'upload', timeouts);
      if (path !== '/healthz' && path !== '/readyz') {
        record(request, response, match.kind === 'found' ? match.target.name : method);
        await status.relay()?.limits.address(address);
      }
      await serve(match, request, response);
    } catch (thrown) {
      const error = await countBadKey(thrown, status.relay()?.limits, address);
      await sendError(request, response, error, { log, requestId });
    }
  }

  /** Routes of the relay that do not go through Next. Pages need no relay and do not wait for it. */
  async function matchRelay(method: string, path: string): Promise<Match<NodeTarget>> {
    if (!relayPaths.test(path)) return { kind: 'nothing' };
    const router = await relayRouter();
    if (!router) throw new ApiError('SHUTTING_DOWN');
    return router(method, path);
  }

  /**
   * Metrics and log of an answer that does not go through `answer.ts`.
   *
   * @param operation the route's template and not its path: paths and queries carry signatures and leases
   */
  function record(request: IncomingMessage, response: ServerResponse, operation: string): void {
    const startedAt = performance.now();
    const { method } = request;
    const request_id = response.getHeader('X-Request-Id');
    response.once('close', () => {
      const { statusCode, writableFinished } = response;
      const ms = performance.now() - startedAt;
      status.relay()?.metrics.request(operation, statusCode, ms / 1000);
      const line = { request_id, method, operation, status: statusCode, ms: Math.round(ms) };
      log.info(line, writableFinished ? 'request' : 'request cut off');
    });
  }

  const server: Server = createServer({ requireHostHeader: false }, (request, response) => {
    openResponses.add(response);
    response.once('close', () => {
      openResponses.delete(response);
      if (openResponses.size === 0) for (const resolve of idleWaiters.splice(0)) resolve();
    });
    // Without a listener an error of a cut connection would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    void answer(request, response);
  });
  server.on('clientError', answerMalformed);
  server.on('checkExpectation', (request, response) => {
    const { requestId } = assignContext(request, config);
    const error = new ApiError('EXPECTATION_FAILED');
    void sendError(request, response, error, { log, requestId });
  });
  // A proxy's method. Without a listener Node closes the connection without an answer.
  server.on('connect', (_request, socket) => {
    // Node has removed its own listeners: an error of a cut connection would end the process, and nobody reads on.
    socket.on('error', () => undefined);
    socket.resume();
    refuseConnection(socket, methodNotAllowed(apiMethods));
  });
  setTimeouts(server, timeouts);

  return {
    server,
    get open(): number {
      return openResponses.size;
    },
    idle: (): Promise<void> =>
      openResponses.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            idleWaiters.push(resolve);
          }),
  };
}

export type RequestServer = ReturnType<typeof createRequestServer>;

async function serve(
  match: Exclude<Match<NodeTarget>, { kind: 'nothing' }>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (match.kind === 'found') {
    // Handlers of files that are read set these headers themselves.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeaders(new Headers(corsHeaders));
    }
    await match.target.handler(request, response, match.params);
    return;
  }
  if (request.method === 'OPTIONS') {
    response.writeHead(204, { ...corsHeaders, ...preflightHeaders(match.allow) }).end();
    return;
  }
  throw methodNotAllowed(match.allow);
}
