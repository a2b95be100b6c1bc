import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Relay } from '../open';
import { createHealth, type ServerStatus } from './health';
import type { Pages } from './next';
import {
  answerMalformed,
  corsHeaders,
  countBadKey,
  methodNotAllowed,
  preflightHeaders,
  refusal,
  refuseConnection,
  sendAnswer,
  toApiError,
} from './reply';
import {
  apiMethods,
  assignContext,
  checkMethod,
  correctSlashes,
  pathOf,
  publicDocument,
  removeNextHeaders,
  toRequest,
} from './request';
import { findRoute } from './router';
import { defaultTimeouts, setTimeouts, type Timeouts, watchBody } from './timeouts';

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
export function createRequestServer(dependencies: ServerDependencies): Server {
  const { config, log, status, timeouts = defaultTimeouts } = dependencies;
  const health = createHealth(status);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { requestId, address } = assignContext(request, config);
    response.setHeader('X-Request-Id', requestId);
    // The client connects again, to another node.
    if (status.stopping()) response.shouldKeepAlive = false;
    try {
      await dispatch(request, response);
    } catch (thrown) {
      const error = await countBadKey(thrown, status.relay()?.limits, address);
      await sendError(request, response, error, requestId);
    }
  }

  async function dispatch(request: IncomingMessage, response: ServerResponse): Promise<void> {
    correctSlashes(request);
    const path = pathOf(request);
    const method = request.method ?? 'GET';
    const probe = health.get(path);
    const match = findRoute(method, path);
    const route = match.kind === 'nothing' ? undefined : match.route;
    watchBody(request, response, timeouts);
    if (probe) {
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
      const never = new AbortController();
      await sendAnswer(request, response, await probe(toRequest(request, never.signal)));
      return;
    }
    if (route?.bypassesNext || route?.frequent) {
      // The error of a relay that does not open is reported by the caller that opens it.
      const relay = await dependencies.relay().catch((cause: unknown) => {
        throw new ApiError('SHUTTING_DOWN', undefined, { cause });
      });
      // Loaded late: pages do not need it.
      const { answerDirectly } = await import('./direct');
      await answerDirectly(relay, request, response);
      return;
    }
    if (path === publicDocument) {
      response.setHeaders(new Headers(corsHeaders));
      if (method === 'OPTIONS') {
        response.writeHead(204, preflightHeaders(['GET', 'HEAD', 'OPTIONS'])).end();
        return;
      }
    }
    const pages = await dependencies.pages();
    checkMethod(method, path, pages);
    removeNextHeaders(request, path);
    await pages.handle(request, response);
  }

  /**
   * Answers with an error. Unexpected errors are logged. Where an answer has begun, the connection is cut, so that the
   * client does not take a part for the whole.
   */
  async function sendError(
    request: IncomingMessage,
    response: ServerResponse,
    thrown: unknown,
    requestId: string,
  ): Promise<void> {
    const error = toApiError(thrown);
    if (error.status >= 500) log.error({ err: thrown, request_id: requestId }, 'a request failed');
    if (response.headersSent) {
      if (!response.writableEnded) response.destroy();
      return;
    }
    response.setHeaders(new Headers({ ...corsHeaders, 'Cache-Control': 'no-store' }));
    await sendAnswer(request, response, refusal(error, requestId));
  }

  const server = createServer({ requireHostHeader: false }, (request, response) => {
    // Without a listener an error of a cut connection would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    void answer(request, response);
  });
  server.on('clientError', answerMalformed);
  server.on('checkExpectation', (request, response) => {
    const { requestId } = assignContext(request, config);
    void sendError(request, response, new ApiError('EXPECTATION_FAILED'), requestId);
  });
  // A proxy's method. Without a listener Node closes the connection without an answer.
  server.on('connect', (_request, socket) => {
    // Node has removed its own listeners: an error of a cut connection would end the process, and nobody reads on.
    socket.on('error', () => undefined);
    socket.resume();
    refuseConnection(socket, methodNotAllowed(apiMethods));
  });
  setTimeouts(server, timeouts);

  return server;
}
