import { ApiError, type Endpoint } from '../../lib/contract/v3';
import type { Caller, Relay } from '../relay';
import { addressHeader, requestIdHeader, requestIdOf } from '../server/caller';
import { toApiError } from './failure';
import type { Handler } from './handler';
import { handlers } from './handlers';
import { check, readJson } from './input';
import { findRoute, type Route } from './router';

/** Headers that browsers may send to the public API from any page (v3-api.md, drop-in rule 8). */
const allowedHeaders =
  'authorization, content-type, idempotency-key, x-client-name, x-client-version, x-client-os';
/** Headers that scripts of other origins may read. */
const exposedHeaders =
  'X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset';

/** What is known of a request while it is answered. */
interface Visit {
  readonly requestId: string;
  readonly address: string;
  readonly route: Route;
  caller: Caller | null;
  /** For the answer, whether it succeeds or not: limits, `Allow`. */
  readonly headers: Headers;
}

/**
 * Answers one request of the API: finds the operation, lets the caller in, checks what was sent, and
 * hands it to the operation's handler. Never throws; every refusal is an `ApiError`'s body.
 */
export async function answer(relay: Relay, request: Request): Promise<Response> {
  const started = performance.now();
  const { pathname } = new URL(request.url);
  const visit: Visit = {
    requestId: requestIdOf(request.headers.get(requestIdHeader)),
    // Set by our server alone, which drops what callers send under this name.
    address: request.headers.get(addressHeader) ?? 'unknown',
    route: findRoute(request.method, pathname),
    caller: null,
    headers: new Headers(),
  };
  let response: Response;
  try {
    response = await serve(relay, request, visit);
  } catch (error) {
    response = await refuse(relay, visit, error);
  }
  finish(request, response, visit);
  const seconds = (performance.now() - started) / 1000;
  const operation = nameOf(visit.route);
  relay.metrics.request(operation, response.status, seconds);
  relay.log.info(
    {
      request_id: visit.requestId,
      method: request.method,
      operation,
      status: response.status,
      ms: Math.round(seconds * 1000),
      key_id: visit.caller?.keyId,
    },
    'request',
  );
  if (request.method !== 'HEAD') return response;
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}

async function serve(relay: Relay, request: Request, visit: Visit): Promise<Response> {
  const { route } = visit;
  if (request.method === 'OPTIONS') return preflight(request, visit);
  await relay.limits.address(visit.address);
  if (route.kind === 'nothing') throw new ApiError('NOT_FOUND');
  if (route.kind === 'method') {
    throw new ApiError('METHOD_NOT_ALLOWED', undefined, {
      headers: { Allow: route.allow.join(', ') },
    });
  }
  const { operation, endpoint, params } = route;
  const handler: Handler | undefined = handlers[operation];
  // Uploads have no handler here: the server answers them before Next sees them.
  if (handler === undefined) throw new ApiError('NOT_FOUND');
  visit.caller = await letIn(relay, request, endpoint);
  if (visit.caller !== null && endpoint.limit !== 'none') {
    const headers = await relay.limits.key(visit.caller, endpoint.limit);
    for (const [name, value] of Object.entries(headers)) visit.headers.set(name, value);
  }
  const query = endpoint.query && check(endpoint.query, queryOf(request));
  const body =
    endpoint.body &&
    check(endpoint.body, await readJson(request, relay.config.KINORA_MAX_BODY_BYTES));
  const answered = await handler(relay, {
    request,
    caller: visit.caller,
    params,
    query: query ?? {},
    body: body ?? {},
    requestId: visit.requestId,
  });
  if (answered instanceof Response) return answered;
  return Response.json({ code: 200, message: 'success', data: answered });
}

async function letIn(relay: Relay, request: Request, endpoint: Endpoint): Promise<Caller | null> {
  const { access } = endpoint;
  const header = (name: string) => request.headers.get(name);
  const authorization = header('authorization');
  if (access === 'anyone') return null;
  if (access === 'admin') {
    return relay.keys.authenticateAdmin({
      authorization,
      cookie: header('cookie'),
      method: request.method,
      origin: header('origin'),
      host: header('host'),
    });
  }
  if (access === 'worker') return relay.keys.authenticate(authorization, 'worker');
  const caller = await relay.keys.authenticate(authorization, 'api');
  if (!caller.scopes.includes(access)) {
    throw new ApiError('FORBIDDEN', undefined, {
      details: [{ field: 'scope', message: `The key needs the scope ${access}.` }],
    });
  }
  return caller;
}

/** Where a name comes twice, the last counts. */
function queryOf(request: Request): Record<string, string> {
  return Object.fromEntries(new URL(request.url).searchParams);
}

function preflight(request: Request, visit: Visit): Response {
  const { route } = visit;
  if (route.kind === 'nothing') throw new ApiError('NOT_FOUND');
  // The router knows one operation by OPTIONS as little as by any other foreign method.
  if (route.kind === 'method') {
    visit.headers.set('Allow', route.allow.join(', '));
    if (!route.internal && request.headers.has('access-control-request-method')) {
      visit.headers.set('Access-Control-Allow-Methods', route.allow.join(', '));
      visit.headers.set('Access-Control-Allow-Headers', allowedHeaders);
      visit.headers.set('Access-Control-Max-Age', '86400');
    }
  }
  return new Response(null, { status: 204 });
}

async function refuse(relay: Relay, visit: Visit, error: unknown): Promise<Response> {
  let refusal = toApiError(error);
  if (refusal.code === 'UNAUTHORIZED') {
    try {
      await relay.limits.badKey(visit.address);
    } catch (tooMany) {
      refusal = toApiError(tooMany);
    }
  }
  // What we refused ourselves is in the request's line; the rest is a fault of ours or of the storage.
  if (refusal.status >= 500 || !(error instanceof ApiError)) {
    relay.log.error(
      { request_id: visit.requestId, operation: nameOf(visit.route), err: error },
      refusal.code,
    );
  }
  return Response.json(refusal.toBody(visit.requestId), {
    status: refusal.status,
    headers: refusal.headers,
  });
}

/** Headers of every answer. */
function finish(request: Request, response: Response, visit: Visit): void {
  const { headers } = response;
  for (const [name, value] of visit.headers) headers.set(name, value);
  headers.set('X-Request-Id', visit.requestId);
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store');
  // Pages of other origins may call the public API, with a key; never what a session's cookie opens.
  const { route } = visit;
  const isInternal =
    route.kind === 'method'
      ? route.internal
      : route.kind === 'operation' && route.endpoint.internal === true;
  if (isInternal) return;
  headers.set('Access-Control-Allow-Origin', '*');
  if (request.headers.has('origin')) headers.set('Access-Control-Expose-Headers', exposedHeaders);
}

/** For metrics and logs: never the path itself, which may carry anything. */
function nameOf(route: Route): string {
  return route.kind === 'operation' ? route.operation : route.kind;
}
