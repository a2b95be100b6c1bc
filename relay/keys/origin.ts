import { ApiError } from '../../lib/contract/v3';

/**
 * Refuses what another site made a signed-in browser send. SameSite=Strict keeps the cookie at home
 * already; another port of the same host is the same *site* and would pass without this.
 *
 * @throws ApiError `FORBIDDEN`
 */
export function requireOwnOrigin(
  request: { method: string; origin: string | null; host: string | null },
  publicUrl: string | undefined,
): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  if (isOwnOrigin(request.origin, request.host, publicUrl)) return;
  throw new ApiError('FORBIDDEN', 'This did not come from a page of this Kinora.');
}

function isOwnOrigin(
  origin: string | null,
  host: string | null,
  publicUrl: string | undefined,
): boolean {
  if (origin === null || !URL.canParse(origin)) return false;
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return true;
  // The name that the browser itself called: also right where the server is known by several.
  return new URL(origin).host === host;
}
