import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../lib/contract/v3';
import { findRoute } from '../api/router';

/** What Next's route handlers and pages can be asked with. Node knows some thirty more. */
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
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
 * Refuses methods that Next would answer in a form of its own.
 *
 * @throws ApiError `METHOD_NOT_ALLOWED`
 */
export function checkMethod(method: string, path: string): void {
  if (methods.some((known) => known === method)) return;
  const route = findRoute(method, path);
  const allow = route.kind === 'method' ? route.allow : methods;
  throw new ApiError('METHOD_NOT_ALLOWED', undefined, { headers: { Allow: allow.join(', ') } });
}

/** The API answers everybody alike: what Next's pages tell its server is not for it. */
export function withoutNextHeaders({ headers }: IncomingMessage, path: string): void {
  if (!path.startsWith('/api/')) return;
  for (const name of Object.keys(headers)) if (nextHeaders.test(name)) delete headers[name];
}
