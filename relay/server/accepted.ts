import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../lib/contract/v3';
import { findOperation } from '../http/router';
import type { Pages } from './pages';

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
