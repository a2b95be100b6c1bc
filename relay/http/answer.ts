import type { z } from 'zod';
import { ApiError, type Endpoint, endpoints, type OperationId } from '../../lib/contract/v3';
import { type Caller, requireScope } from '../access/caller';
import { familiesOf } from '../config';
import type { Relay } from '../open';
import { type Handler, handlers } from './handlers';
import { check, readJson, withoutNulls } from './input';
import { notFound } from './not-found';
import { corsHeaders, countBadKey, methodNotAllowed, preflightHeaders, toApiError } from './reply';
import { addressHeader, apiMethods, requestIdHeader, requestIdOf } from './request';
import { findOperation, type Match } from './router';

interface RequestContext {
  readonly requestId: string;
  readonly address: string;
  readonly path: string;
  readonly route: Match<OperationId>;
  /** The name for metrics and logs, which never hold the path itself: it may contain secrets. */
  readonly operation: string;
  caller: Caller | null;
  /** For the answer, whether it succeeds or not: limits, `Allow`. */
  readonly headers: Headers;
}

/**
 * Answers one request of the API: finds the operation, authenticates the caller, checks the input and calls the
 * operation's handler. Never throws; every refusal is an `ApiError`'s body.
 */
export async function answer(relay: Relay, request: Request): Promise<Response> {
  const started = performance.now();
  const { method } = request;
  const { pathname: path } = new URL(request.url);
  const route = findOperation(method, path);
  const operation = route.kind === 'found' ? route.target : route.kind;
  const requestId = requestIdOf(request.headers.get(requestIdHeader));
  // Set by our server, which drops a value from outside.
  const address = request.headers.get(addressHeader) ?? 'unknown';
  const headers = new Headers();
  const context: RequestContext = {
    requestId,
    address,
    path,
    route,
    operation,
    caller: null,
    headers,
  };
  const response = await serve(relay, request, context).catch((error: unknown) =>
    refuse(relay, context, error),
  );
  setCommonHeaders(response, context);
  const { status } = response;
  const seconds = (performance.now() - started) / 1000;
  const ms = Math.round(seconds * 1000);
  const key_id = context.caller?.keyId;
  relay.metrics.request(operation, status, seconds);
  relay.log.info({ request_id: requestId, method, operation, status, ms, key_id }, 'request');
  if (method !== 'HEAD') return response;
  await response.body?.cancel();
  return new Response(null, { status, headers: response.headers });
}

async function serve(relay: Relay, request: Request, context: RequestContext): Promise<Response> {
  const { route, requestId } = context;
  if (request.method === 'OPTIONS') return preflight(request, context);
  await relay.limits.address(context.address);
  if (route.kind === 'nothing') {
    throw notFound(context.path, [...familiesOf(relay.config).keys()]);
  }
  if (route.kind === 'method') throw methodNotAllowed(route.allow);
  const endpoint: Endpoint = endpoints[route.target];
  const handler: Handler | undefined = handlers[route.target];
  // Uploads have no handler here: the server answers them before Next sees them.
  if (handler === undefined) throw new ApiError('NOT_FOUND');
  const caller = await authenticate(relay, request, endpoint);
  context.caller = caller;
  if (caller !== null && endpoint.limit !== 'none') {
    setAll(context.headers, await relay.limits.key(caller, endpoint.limit));
  }
  // Of a name that comes twice, the last value counts.
  const asked = Object.fromEntries(new URL(request.url).searchParams);
  const query = endpoint.query ? check(endpoint.query, asked) : {};
  const body = endpoint.body ? await checkedBody(relay, endpoint.body, request) : {};
  const params = endpoint.params?.parse(route.params) ?? {};
  const answered = await handler(relay, { request, caller, params, query, body, requestId });
  if (answered instanceof Response) return answered;
  return Response.json({ code: 200, message: 'success', data: answered });
}

async function checkedBody(relay: Relay, schema: z.ZodType, request: Request): Promise<unknown> {
  const sent = await readJson(request, relay.config.KINORA_MAX_BODY_BYTES);
  return check(schema, withoutNulls(schema, sent));
}

async function authenticate(
  relay: Relay,
  request: Request,
  endpoint: Endpoint,
): Promise<Caller | null> {
  const { access } = endpoint;
  const authorization = request.headers.get('authorization');
  if (access === 'anyone') return null;
  if (access === 'admin') return relay.keys.authenticateAdmin(request);
  if (access === 'worker') return relay.keys.authenticate(authorization, 'worker');
  const caller = await relay.keys.authenticate(authorization, 'api');
  requireScope(caller, access);
  return caller;
}

function preflight(request: Request, context: RequestContext): Response {
  const { route } = context;
  // No operation uses OPTIONS, so a known path is a match of kind `method`. A page must be able to send its request
  // to an unknown path too: else the browser keeps the 404 from it.
  const allow = route.kind === 'method' ? route.allow : apiMethods;
  context.headers.set('Allow', allow.join(', '));
  if (!isInternal(route) && request.headers.has('access-control-request-method')) {
    setAll(context.headers, preflightHeaders(allow));
  }
  return new Response(null, { status: 204 });
}

async function refuse(relay: Relay, context: RequestContext, thrown: unknown): Promise<Response> {
  const error = await countBadKey(thrown, relay.limits, context.address);
  const refusal = toApiError(error);
  // A refusal is in the request's log line; anything else is a fault of the server or its storage.
  const isStop = refusal.code === 'SHUTTING_DOWN';
  if (!isStop && (refusal.status >= 500 || !(error instanceof ApiError))) {
    const { requestId: request_id, operation } = context;
    relay.log.error({ request_id, operation, err: error }, refusal.code);
  }
  return Response.json(refusal.toBody(context.requestId), {
    status: refusal.status,
    headers: refusal.headers,
  });
}

function setCommonHeaders(response: Response, context: RequestContext): void {
  const { headers } = response;
  setAll(headers, Object.fromEntries(context.headers));
  headers.set('X-Request-Id', context.requestId);
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store');
  // Pages of other origins may call the public API with a key, but no operation that takes a session cookie.
  const { route } = context;
  if (!isInternal(route)) setAll(headers, corsHeaders);
}

function setAll(headers: Headers, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) headers.set(name, value);
}

function isInternal(route: Match<OperationId>): boolean {
  if (route.kind === 'nothing') return false;
  const { internal }: Endpoint = endpoints[route.target];
  return internal === true;
}
