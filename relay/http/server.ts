import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import { type Config, localOrigin } from '../config';
import { once, within } from '../loop';
import type { RunningRelay } from '../open';
import { createHealth } from './health';
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

/** Time limits of the HTTP server, in milliseconds. */
const defaultTimeouts = {
  /** The head of a request. */
  headMs: 30_000,
  /** The least rate of a body, over each `idleMs`: one of a byte now and then would hold its connection for ever. */
  minBytesPerSecond: 500,
  /** Between two pieces of a body, and between two that a slow reader takes. */
  idleMs: 60_000,
  /** A connection without a request: more than the 60 s of most proxies, which reuse connections. */
  keepAliveMs: 65_000,
};
export type Timeouts = typeof defaultTimeouts;

/**
 * Refuses a request whose body pauses or is slower than the least rate. After the body an answer may take any time,
 * as long as the client reads it.
 */
function watchBody(
  request: IncomingMessage,
  response: ServerResponse,
  { idleMs, minBytesPerSecond }: Timeouts = defaultTimeouts,
): void {
  const { socket } = request;
  const refuse = (sentence: string) => {
    if (request.complete) return;
    // The part of an answer that was sent cannot be replaced.
    if (response.headersSent) {
      request.destroy();
      return;
    }
    const error = new ApiError('REQUEST_TIMEOUT', sentence);
    response.statusCode = error.status;
    refuseConnection(socket, error, String(response.getHeader('X-Request-Id')));
    // Ends the handler, which must not take what still arrives for the whole body. (To destroy the request would
    // destroy the connection, and the answer with it.)
    request.emit('error', error);
  };
  const paused = `No part of the body arrived for ${idleMs / 1000} s.`;
  const slow = `The body arrives too slowly: the least rate is ${minBytesPerSecond} bytes a second.`;

  let counted = socket.bytesRead;
  const timer = setInterval(() => {
    const bytes = socket.bytesRead - counted;
    counted = socket.bytesRead;
    if (bytes < (minBytesPerSecond * idleMs) / 1000) refuse(slow);
  }, idleMs).unref();
  const endIdle = () => {
    if (request.complete && response.writableLength > 0) socket.destroy();
    else refuse(paused);
  };
  socket.setTimeout(idleMs);
  // Node destroys a socket whose timeout has no listener here, also while an answer is computed.
  response.on('timeout', endIdle);
  const stop = () => clearInterval(timer);
  request.once('end', stop);
  response.once('close', () => {
    stop();
    // Answered before the body was there, as a refusal may be: the rest is not waited for without end.
    if (request.complete || socket.destroyed) return;
    const close = setTimeout(() => socket.destroy(), idleMs).unref();
    // Not on the socket, which may have any number of such requests.
    request.once('close', () => clearTimeout(close));
  });
}

/** Connections that may wait to be accepted: beyond, a thousand tabs that come together wait for seconds. */
const mostConnecting = 4096;
/** Loaded late, as pages do not need it, and once: each import takes a tenth of the time of an empty claim. */
const api = once(() => import('./answer'));
/** How often connections are closed that have become idle while the node stops, in milliseconds. */
const idleCheckMs = 50;

export interface StartOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Opens the pages; called once the port is known. */
  readonly pages: (at: { hostname: string; port: number; server: Server }) => Promise<Pages>;
  /** Opens the relay, with the port that the server has. */
  readonly open: (config: Config) => Promise<RunningRelay>;
  readonly timeouts?: Timeouts;
}

/**
 * Starts the one HTTP server of a node, and returns once it listens: a port that is in use is reported before anything
 * is opened. Then the relay opens, and after it the pages: both compute on one thread, and the API needs no page.
 * Requests wait for what they need. It answers large bodies, health checks and frequent reads itself; everything else
 * goes to the pages (../README.md says why).
 *
 * @throws Error with one sentence when it cannot listen
 */
export async function startServer(options: StartOptions) {
  const { log, timeouts = defaultTimeouts } = options;
  const { KINORA_HOST: hostname, KINORA_STOP_SECONDS: stopSeconds } = options.config;
  let opened: RunningRelay | null = null;
  let stopping = false;
  const health = createHealth({ relay: () => opened, stopping: () => stopping });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const context = assignContext(request, options.config);
    response.setHeader('X-Request-Id', context.requestId);
    // The client connects again, to another node.
    if (stopping) response.shouldKeepAlive = false;
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
    const probe = health[path];
    const match = findRoute(method, path);
    const route = match.kind === 'nothing' ? undefined : match.route;
    watchBody(request, response, timeouts);
    // Ranges are defined for GET alone (RFC 9110, 14.2).
    if (method === 'HEAD') delete request.headers.range;
    if (probe) {
      if (method !== 'GET' && method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD']);
      return await probe(toRequest(request, response));
    }
    if (route?.bypassesNext || route?.frequent) {
      // The error of a relay that does not open is reported by the caller that opens it.
      const ready = await relay.catch((cause: unknown) => {
        throw new ApiError('SHUTTING_DOWN', undefined, { cause });
      });
      const { answer } = await api();
      return await answer(ready, toRequest(request, response));
    }
    if (path === publicDocument) {
      response.setHeaders(new Headers(corsHeaders));
      const headers = preflightHeaders(['GET', 'HEAD', 'OPTIONS']);
      if (method === 'OPTIONS') return new Response(null, { status: 204, headers });
    }
    const open = await pages;
    checkMethod(method, path, open);
    removeNextHeaders(request, path);
    await open.handle(request, response);
    return null;
  }

  /** If an answer has begun, cuts the connection, so that the client does not take a part for the whole. */
  async function sendRefusal(
    request: IncomingMessage,
    response: ServerResponse,
    thrown: unknown,
    context: RequestContext,
  ): Promise<void> {
    const refused = await refuse(thrown, context, log, opened?.limits);
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
    const context = assignContext(request, options.config);
    void sendRefusal(request, response, new ApiError('EXPECTATION_FAILED'), context);
  });
  // A proxy's method. Without a listener Node closes the connection without an answer.
  server.on('connect', (_request, socket) => {
    // Node has removed its own listeners: an error of a broken connection would end the process, and no code reads
    // on.
    socket.on('error', () => undefined);
    socket.resume();
    refuseConnection(socket, methodNotAllowed(apiMethods));
  });
  // Node's own limit for a whole request would cut slow uploads: `watchBody` has one for a body that does not come.
  server.requestTimeout = 0;
  server.headersTimeout = timeouts.headMs;
  server.keepAliveTimeout = timeouts.keepAliveMs;

  const port = await listen(server, options.config);
  const config: Config = { ...options.config, PORT: port };
  const relay = options.open(config).then((open) => {
    opened = open;
    return open;
  });
  const pages = relay.then(() => {
    if (stopping) throw new Error('The node was stopped before its pages were opened.');
    return options.pages({ hostname, port, server });
  });
  // The callers that wait for them get the error.
  pages.catch(() => undefined);
  return {
    /** Address for programs of this machine, such as `http://127.0.0.1:3000`. */
    origin: localOrigin(config),
    port,
    /** Resolves once the relay is open; rejects with the error that kept it from opening. */
    relay,
    pages,
    /**
     * Ends the node: no new claims; held claims, open answers and webhook attempts end within
     * `KINORA_STOP_SECONDS`; then everything is closed. Later calls wait for the same end.
     */
    stop: once(async () => {
      stopping = true;
      // The relay may be opening just now.
      const running = await relay.catch(() => null);
      await endAnswers(server, running, stopSeconds * 1000, log);
      await running?.stop();
      // Pages that never opened need no end.
      await pages.then((open) => open.close()).catch(() => undefined);
    }),
  };
}
export type RunningServer = Awaited<ReturnType<typeof startServer>>;

/** Waits until answers and background work have ended, for a limited time, and cuts the others. */
async function endAnswers(
  server: Server,
  relay: RunningRelay | null,
  limitMs: number,
  log: Logger,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A connection is idle once its answer has ended: its client may keep it open.
  const closing = setInterval(() => server.closeIdleConnections(), idleCheckMs);
  const ended = await within(limitMs, Promise.all([closed, relay?.finish()]));
  if (!ended) log.warn('some answers or deliveries were cut off');
  server.closeAllConnections();
  await closed;
  clearInterval(closing);
}

function listen(server: Server, { KINORA_HOST: host, PORT }: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(new Error(listenError(cause, host, PORT), { cause }));
    });
    const opened = () => resolve((server.address() as AddressInfo).port);
    server.listen(PORT, host, mostConnecting, opened);
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): string {
  if (error.code === 'EADDRINUSE') {
    return `Port ${port} of ${host} is taken. Stop what has it, or set PORT to another one.`;
  }
  if (error.code === 'EACCES') {
    return `Port ${port} may not be used here. Set PORT to one above 1023.`;
  }
  return `The server cannot listen on ${host}, port ${port}: ${error.message}.`;
}
