import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { ReadableStream } from 'node:stream/web';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Pages } from './next';
import { methodNotAllowed } from './reply';
import { findRoute } from './router';

/** Headers in which the server passes a request's context on; values from outside are replaced. */
export const requestIdHeader = 'x-request-id';
export const addressHeader = 'x-kinora-address';

/** Methods that Next's route handlers can have. Node's parser accepts some thirty more. */
export const apiMethods: readonly string[] = 'GET HEAD POST PUT PATCH DELETE OPTIONS'.split(' ');
/** The description of the API, which other sites may read too: a file of the pages. */
export const publicDocument = '/openapi.json';

/** Paths of the API, its root included; the others are pages and files. */
const apiPaths = /^\/api(\/|$)/;

/** Methods of pages and files: Next answers a file with 500 for any other. */
const pageMethods: readonly string[] = ['GET', 'HEAD'];
/** With these headers Next's own pages request something else than the page, or a redirect. */
const nextHeaders = /^(rsc|next-.*|x-nextjs-.*|x-middleware-.*|x-matched-path|x-invoke-.*)$/;

/** The request id of a caller where it is safe to log, else a new one. */
export function requestIdOf(header: unknown): string {
  const isSafe = typeof header === 'string' && /^[A-Za-z0-9._:-]{8,64}$/.test(header);
  return isSafe ? header : randomUUID();
}

/**
 * Sets a request's id and its caller's address as headers, for everything that handles the request.
 * A valid `x-request-id` is kept; an `x-kinora-address` from outside is always replaced.
 */
export function assignContext(
  request: IncomingMessage,
  config: Pick<Config, 'KINORA_ADDRESS_HEADER'>,
): { requestId: string; address: string } {
  const requestId = requestIdOf(request.headers[requestIdHeader]);
  const address = addressOf(request, config.KINORA_ADDRESS_HEADER);
  request.headers[requestIdHeader] = requestId;
  request.headers[addressHeader] = address;
  return { requestId, address };
}

/**
 * The caller's address: the one in the proxy's header, else that of the socket. The last entry of a list counts: each
 * proxy appends one, and callers may claim any earlier one.
 *
 * @param header name of the proxy's header; empty without a proxy
 */
export function addressOf(request: IncomingMessage, header: string): string {
  const socketAddress = plainAddress(request.socket.remoteAddress ?? '');
  if (header === '') return socketAddress;
  const forwarded = [request.headers[header.toLowerCase()] ?? ''].flat().join(',');
  const last = plainAddress(forwarded.split(',').at(-1) ?? '');
  return isIP(last) === 0 ? socketAddress : last;
}

/** An address without brackets, port, zone and IPv4-mapped prefix. */
function plainAddress(address: string): string {
  return address
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/**
 * A request as handlers get it; its signal aborts when the client has disconnected. The origin has no meaning:
 * addresses in answers start with `KINORA_PUBLIC_URL`.
 */
export function toRequest(request: IncomingMessage, response: ServerResponse): Request {
  const { method = 'GET', url = '/' } = request;
  const closed = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) closed.abort();
  });
  const { signal } = closed;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const hasBody = method !== 'GET' && method !== 'HEAD';
  // A handler that reads no further must not destroy the connection, over which its answer is sent.
  const pieces = request.iterator({ destroyOnReturn: false });
  const body = hasBody ? (ReadableStream.from(pieces) as BodyInit & ReadableStream) : null;
  const init: RequestInit & { duplex: 'half' } = { method, headers, body, signal, duplex: 'half' };
  return new Request(new URL(url, 'http://localhost'), init);
}

export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

/** Whether a proxy passed the request on: then the address of the socket is the proxy's. */
export function isForwarded({ headers }: Request): boolean {
  return ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => headers.has(name));
}

/**
 * The path of a request, percent-encoded as it came.
 *
 * @throws ApiError `INVALID_PARAMETER` for a target that is no path, or that cannot be decoded
 */
export function pathOf({ url = '', headers, httpVersion }: IncomingMessage): string {
  const refusal = (sentence: string, remedy: string, cause?: unknown) =>
    new ApiError('INVALID_PARAMETER', sentence, { remedy, cause });
  // RFC 9112, 3.2; Node's own check answers without a body.
  if (headers.host === undefined && httpVersion === '1.1') {
    throw refusal('The header Host is missing.', 'Send `Host:` and the name of this server.');
  }
  // Proxies get whole addresses, and OPTIONS may have the target `*`.
  if (!url.startsWith('/')) {
    const sentence = 'The address of a request starts with a slash.';
    throw refusal(sentence, 'Send the path, such as `GET /api/v3/models`.');
  }
  const [path = '/'] = url.split('?');
  try {
    decodeURIComponent(path);
  } catch (cause) {
    const sentence = 'The address is not percent-encoded as it should be.';
    throw refusal(sentence, 'Write a percent sign as `%25`.', cause);
  }
  return path;
}

/**
 * Removes the slashes that a base URL with one at its end leaves in a path of the API, before or behind the version
 * or at the end: `//api/v3//models/` is `/api/v3/models`. Others stay: an id that is missing leaves one too.
 */
export function correctSlashes(request: IncomingMessage): void {
  const [path = '', ...query] = (request.url ?? '').split('?');
  if (!/^\/+api\//.test(path)) return;
  const corrected = path
    .replace(/^\/+api\/+/, '/api/')
    .replace(/^(\/api\/v\d)\/+/, '$1/')
    // Begins at the first of them only: else the time grows with the square of their number.
    .replace(/(?<!\/)\/+$/, '');
  request.url = [corrected, ...query].join('?');
}

/**
 * Refuses methods that Next would answer in its own form, or with a 500.
 *
 * @throws ApiError `METHOD_NOT_ALLOWED`
 */
export function checkMethod(
  method: string,
  path: string,
  { anyMethod = false }: Pick<Pages, 'anyMethod'>,
): void {
  const isPage = !anyMethod && !apiPaths.test(path);
  const known = isPage ? pageMethods : apiMethods;
  if (known.includes(method)) return;
  const route = findRoute(method, path);
  const allow = route.kind === 'method' ? route.allow : known;
  throw methodNotAllowed(allow);
}

/** Removes Next's own headers from requests of the API, whose answers must not depend on them. */
export function removeNextHeaders({ headers }: IncomingMessage, path: string): void {
  if (!apiPaths.test(path)) return;
  for (const name of Object.keys(headers)) if (nextHeaders.test(name)) delete headers[name];
}
