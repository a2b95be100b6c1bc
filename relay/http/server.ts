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
  methodNotAllowed,
  preflightHeaders,
  type RequestContext,
  refuse,
  refuseConnection,
  sendAnswer,
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
    const context = assignContext(request, config);
    response.setHeader('X-Request-Id', context.requestId);
    // The client connects again, to another node.
    if (status.stopping()) response.shouldKeepAlive = false;
    try {
      const answered = await dispatch(request, response);
      if (answered) await sendAnswer(request, response, answered);
    } catch (thrown) {
      await sendRefusal(request, response, thrown, context);
    }
  }

  /** @returns null where the pages have answered */
  async function dispatch(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Response | null> {
    correctSlashes(request);
    const path = pathOf(request);
    const method = request.method ?? 'GET';
    const probe = health.get(path);
    const match = findRoute(method, path);
    const route = match.kind === 'nothing' ? undefined : match.route;
    watchBody(request, response, timeouts);
    if (probe) {
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
      return await probe(toRequest(request, response));
    }
    if (route?.bypassesNext || route?.frequent) {
      // The error of a relay that does not open is reported by the caller that opens it.
      const relay = await dependencies.relay().catch((cause: unknown) => {
        throw new ApiError('SHUTTING_DOWN', undefined, { cause });
      });
      // Loaded late: pages do not need it.
      const api = await import('./answer');
      return await api.answer(relay, toRequest(request, response));
    }
    if (path === publicDocument) {
      response.setHeaders(new Headers(corsHeaders));
      const headers = preflightHeaders(['GET', 'HEAD', 'OPTIONS']);
      if (method === 'OPTIONS') return new Response(null, { status: 204, headers });
    }
    const pages = await dependencies.pages();
    checkMethod(method, path, pages);
    removeNextHeaders(request, path);
    await pages.handle(request, response);
    return null;
  }

  /** Where an answer has begun, the connection is cut, so that the client does not take a part for the whole. */
  async function sendRefusal(
    request: IncomingMessage,
    response: ServerResponse,
    thrown: unknown,
    context: RequestContext,
  ): Promise<void> {
    const refused = await refuse(thrown, context, log, status.relay()?.limits);
    if (response.headersSent) {
      if (!response.writableEnded) response.destroy();
      return;
    }
    response.setHeaders(new Headers({ ...corsHeaders, 'Cache-Control': 'no-store' }));
    await sendAnswer(request, response, refused);
  }

  const server = createServer({ requireHostHeader: false }, (request, response) => {
    // Without a listener an error of a cut connection would end the process.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    void answer(request, response);
  });
  server.on('clientError', answerMalformed);
  server.on('checkExpectation', (request, response) => {
    const context = assignContext(request, config);
    void sendRefusal(request, response, new ApiError('EXPECTATION_FAILED'), context);
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
