import { createHmac } from 'node:crypto';
import { ApiError } from '../../lib/contract/v3';
import { sameText } from './format';

const cookieName = 'kinora_session';
/** A session's length in seconds: 7 days. */
export const sessionSeconds = 7 * 24 * 3600;

/**
 * The `Set-Cookie` value of a new session: `keyId.until.mac`, the end in Unix seconds, with an HMAC-SHA256 over both.
 *
 * @param secret of the installation; a key for this one purpose is derived from it
 * @param keyId the key or sign-in token that was used: revoking it ends the session
 */
export function sessionCookie(secret: string, keyId: string, secure: boolean): string {
  const text = `${keyId}.${Math.floor(Date.now() / 1000) + sessionSeconds}`;
  return attributes(`${text}.${sign(secret, text)}`, sessionSeconds, secure);
}

export function clearedCookie(secure: boolean): string {
  return attributes('', 0, secure);
}

/** The signed-in key in a request's `Cookie` header; null for none, a wrong signature or a session that has ended. */
export function readSession(secret: string, cookieHeader: string): string | null {
  for (const part of cookieHeader.split(';')) {
    const [name, value = ''] = part.trim().split('=', 2);
    if (name !== cookieName) continue;
    const [keyId = '', until = '', mac = ''] = value.split('.');
    if (!sameText(mac, sign(secret, `${keyId}.${until}`))) continue;
    if (Number(until) * 1000 > Date.now()) return keyId;
  }
  return null;
}

/** HttpOnly hides the cookie from scripts, SameSite=Strict and {@link requireOwnOrigin} from other sites. */
function attributes(value: string, maxAge: number, secure: boolean): string {
  const cookie = `${cookieName}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  return secure ? `${cookie}; Secure` : cookie;
}

function sign(secret: string, text: string): string {
  const key = createHmac('sha256', secret).update('kinora session v1').digest();
  return createHmac('sha256', key).update(text).digest('base64url');
}

/**
 * Refuses requests that another site made a signed-in browser send. SameSite=Strict keeps the cookie from other
 * sites, but another port or subdomain of the same host is the same site. `Sec-Fetch-Site` is what the browser itself
 * says of the request's page; it is absent on plain http and in old browsers, so `Origin` is compared too.
 *
 * @throws ApiError `FORBIDDEN`
 */
export function requireOwnOrigin(
  { method, headers }: Pick<Request, 'method' | 'headers'>,
  publicUrl: string | undefined,
): void {
  if (method === 'GET' || method === 'HEAD') return;
  const isOwnSite = (headers.get('sec-fetch-site') ?? 'same-origin') === 'same-origin';
  if (isOwnSite && isOwnOrigin(headers.get('origin'), headers.get('host'), publicUrl)) return;
  throw new ApiError('FORBIDDEN', 'The request did not come from a page of this Kinora.');
}

function isOwnOrigin(
  origin: string | null,
  host: string | null,
  publicUrl: string | undefined,
): boolean {
  if (origin === null || !URL.canParse(origin)) return false;
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return true;
  // The name that the browser called, for servers with several names.
  return new URL(origin).host === host;
}
