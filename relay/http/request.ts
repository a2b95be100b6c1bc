import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Pages } from './next';
import { findOperation } from './router';

/** What Next's route handlers can be asked with. Node knows some thirty more. */
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** What pages and files are asked with: by any other Next answers for a file with a 500. */
const readMethods: readonly string[] = ['GET', 'HEAD'];
/** By these Next's own pages ask for something else than the page, or for a redirect. */
const nextHeaders = /^(rsc|next-.*|x-nextjs-.*|x-middleware-.*|x-matched-path|x-invoke-.*)$/;

/**
 * Paths only: an address as for a proxy, and the `*` of OPTIONS, name nothing here.
 *
 * @throws ApiError `INVALID_PARAMETER`
 */
export function checkTarget({ url = '' }: IncomingMessage): void {
  if (url.startsWith('/')) return;
  throw new ApiError('INVALID_PARAMETER', 'The address of a request starts with a slash.', {
    remedy: 'Send the path, such as `GET /api/v3/models`.',
  });
}

/**
 * Refuses methods that Next would answer in a form of its own, or with a fault.
 *
 * @throws ApiError `METHOD_NOT_ALLOWED`
 */
export function checkMethod(
  method: string,
  path: string,
  { anyMethod = false }: Pick<Pages, 'anyMethod'>,
): void {
  // With a slash too many, as after a base URL that ends in one, Next sends callers to the right path.
  const isRead = !anyMethod && !path.startsWith('/api/') && !path.includes('//');
  const known = isRead ? readMethods : methods;
  if (known.includes(method)) return;
  const route = findOperation(method, path);
  const allow = route.kind === 'method' ? route.allow : known;
  throw new ApiError('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: allow.join(', ') } });
}

/** The API answers everybody alike: what Next's pages tell its server is not for it. */
export function withoutNextHeaders({ headers }: IncomingMessage, path: string): void {
  if (!path.startsWith('/api/')) return;
  for (const name of Object.keys(headers)) if (nextHeaders.test(name)) delete headers[name];
}

/** Headers by which the server tells what is behind it who calls; never taken over from outside. */
export const requestIdHeader = 'x-request-id';
export const addressHeader = 'x-kinora-address';

/** A request id from outside is kept if it cannot spoil a log; else a new one is made. */
export function requestIdOf(given: unknown): string {
  return typeof given === 'string' && /^[A-Za-z0-9._:-]{8,64}$/.test(given) ? given : randomUUID();
}

/**
 * Gives a request its id and its caller's address, as headers, for everything that handles it.
 * A sane `x-request-id` is kept; an `x-kinora-address` from outside is always replaced.
 */
export function introduce(
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
 * The caller's address: what the proxy in front says, else the other end of the socket. Of a list
 * the last entry counts: each proxy appends, so the earlier ones are what callers claim.
 */
export function addressOf(request: IncomingMessage, header: string): string {
  const socketAddress = plain(request.socket.remoteAddress ?? '');
  if (header === '') return socketAddress;
  const told = request.headers[header.toLowerCase()];
  const last = plain((Array.isArray(told) ? told.join(',') : (told ?? '')).split(',').at(-1) ?? '');
  return isIP(last) === 0 ? socketAddress : last;
}

/** Without brackets, port, zone, and the IPv6 coat of an IPv4 address. */
function plain(address: string): string {
  const bare = address
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, '$1')
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
    .replace(/%.*$/, '');
  return bare.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** Whether an address is this machine itself. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

/** Whether some proxy says that it passed the request on: then a loopback socket proves nothing. */
export function isForwarded(request: IncomingMessage): boolean {
  return ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some(
    (name) => request.headers[name] !== undefined,
  );
}
