import { ApiError, inFieldsOfSender, isInternal, type OperationId } from '../../lib/contract/v3';
import { type Caller, requireScope } from '../access/caller';
import { familiesOf } from '../config';
import type { Relay } from '../open';
import { type Handler, handlers } from './handlers';
import { check, readJson, withoutNulls } from './input';
import {
  corsHeaders,
  methodNotAllowed,
  preflightHeaders,
  type RequestContext,
  refuse,
  success,
} from './reply';
import { addressHeader, apiMethods, requestIdHeader, requestIdOf } from './request';
import { type FileRoute, findRoute, type Match, notFound, type Route } from './router';

interface AnswerContext extends RequestContext {
  readonly path: string;
  readonly match: Match;
  caller: Caller | null;
  /** For the answer, whether it succeeds or not: limits, `Allow`. */
  readonly headers: Headers;
}

/**
 * Answers one request of the API or for a file: finds the route, authenticates the caller, checks the input and calls
 * the route's handler. Never throws; every refusal is an `ApiError`'s body.
 */
export async function answer(relay: Relay, request: Request): Promise<Response> {
  const started = performance.now();
  const { method } = request;
  const { pathname: path } = new URL(request.url);
  const match = findRoute(method, path);
  const operation = match.kind === 'found' ? match.route.name : match.kind;
  const requestId = requestIdOf(request.headers.get(requestIdHeader));
  // Set by our server, which drops a value from outside.
  const address = request.headers.get(addressHeader) ?? 'unknown';
  const about = { requestId, address, operation };
  const context: AnswerContext = { ...about, path, match, caller: null, headers: new Headers() };
  const response = await serve(relay, request, context).catch((error: unknown) =>
    refuse(error, about, relay.log, relay.limits),
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

async function serve(relay: Relay, request: Request, context: AnswerContext): Promise<Response> {
  const { match, requestId } = context;
  if (request.method === 'OPTIONS') return preflight(request, context);
  await relay.limits.address(context.address);
  if (match.kind === 'nothing') {
    throw notFound(context.path, [...familiesOf(relay.config).keys()]);
  }
  if (match.kind === 'method') throw methodNotAllowed(match.allow);
  const { route } = match;
  // Bodies are read as they come (RFC 9110, 15.5.16).
  if (!/^(identity)?$/i.test(request.headers.get('content-encoding') ?? '')) {
    const options = { remedy: 'Send it as it is.', headers: { 'Accept-Encoding': 'identity' } };
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The body is compressed.', options);
  }
  const handler: Handler =
    handlers[route.name as OperationId] ?? relay.files.routes[route.name as FileRoute];
  const caller = await authenticate(relay, request, route);
  context.caller = caller;
  if (caller !== null && route.limit) {
    setAll(context.headers, await relay.limits.key(caller, route.limit));
  }
  // The last value of a repeated name counts.
  const { searchParams } = new URL(request.url);
  const query = route.query ? check(route.query, Object.fromEntries(searchParams)) : searchParams;
  const params = route.params?.parse(match.params) ?? match.params;
  const { body: schema, translate } = route;
  const sent = schema ? await readJson(request, relay.config.KINORA_MAX_BODY_BYTES) : {};
  try {
    const told = translate ? translate(sent, match.params) : sent;
    const body = schema ? check(schema, withoutNulls(schema, told)) : {};
    const answered = await handler(relay, { request, caller, params, query, body, requestId });
    return answered instanceof Response ? answered : success(answered);
  } catch (thrown) {
    throw translate ? inFieldsOfSender(thrown, sent) : thrown;
  }
}

async function authenticate(
  relay: Relay,
  request: Request,
  { access }: Route,
): Promise<Caller | null> {
  const authorization = request.headers.get('authorization');
  if (access === 'anyone') return null;
  if (access === 'admin') return relay.keys.authenticateAdmin(request);
  if (access === 'worker') return relay.keys.authenticate(authorization, 'worker');
  const caller = await relay.keys.authenticate(authorization, 'api');
  requireScope(caller, access);
  return caller;
}

function preflight(request: Request, { match, headers }: AnswerContext): Response {
  // No operation uses OPTIONS, so a known path is a match of kind `method`. A page must be able to send its request
  // to an unknown path too: else the browser keeps the 404 from it.
  const allow = match.kind === 'method' ? match.allow : apiMethods;
  headers.set('Allow', allow.join(', '));
  if (!isInternalMatch(match) && request.headers.has('access-control-request-method')) {
    setAll(headers, preflightHeaders(allow));
  }
  return new Response(null, { status: 204 });
}

function setCommonHeaders(response: Response, context: AnswerContext): void {
  const { headers } = response;
  setAll(headers, Object.fromEntries(context.headers));
  headers.set('X-Request-Id', context.requestId);
  headers.set('X-Content-Type-Options', 'nosniff');
  if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store');
  // Pages of other origins may call the public API with a key, but no operation that takes a session cookie. Files
  // and pages, which have a policy, say themselves who may read them.
  if (isInternalMatch(context.match) || headers.has('Content-Security-Policy')) return;
  setAll(headers, corsHeaders);
}

function setAll(headers: Headers, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) headers.set(name, value);
}

function isInternalMatch(match: Match): boolean {
  return match.kind !== 'nothing' && isInternal(match.route.path);
}
