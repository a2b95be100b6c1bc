import { createHmac } from 'node:crypto';
import { sameText } from './format';

const cookieName = 'kinora_session';
/** A session's length in seconds: 7 days. */
export const sessionSeconds = 7 * 24 * 3600;

/** Who is signed in, and until when. */
export interface Session {
  /** The key or sign-in token that it came from: revoking that ends the session. */
  readonly keyId: string;
  /** Unix seconds. */
  readonly until: number;
}

/**
 * The `Set-Cookie` value of a session: `keyId.until.mac`, with an HMAC-SHA256 over the first two.
 *
 * @param secret of the installation; a key for this one purpose is derived from it
 */
export function sessionCookie(secret: string, session: Session, secure: boolean): string {
  const text = `${session.keyId}.${session.until}`;
  return attributes(`${text}.${sign(secret, text)}`, sessionSeconds, secure);
}

/** The `Set-Cookie` value that takes a session away. */
export function clearedCookie(secure: boolean): string {
  return attributes('', 0, secure);
}

/**
 * The session in a request's `Cookie` header; null where there is none, it was tampered with, or it is over.
 *
 * @param now Unix milliseconds
 */
export function readSession(
  secret: string,
  cookieHeader: string | null,
  now = Date.now(),
): Session | null {
  for (const part of (cookieHeader ?? '').split(';')) {
    const [name, value = ''] = part.trim().split('=', 2);
    if (name !== cookieName) continue;
    const [keyId = '', until = '', mac = ''] = value.split('.');
    if (!sameText(mac, sign(secret, `${keyId}.${until}`))) continue;
    if (Number(until) * 1000 > now) return { keyId, until: Number(until) };
  }
  return null;
}

/** SameSite=Strict and the check of `Origin` keep other sites' forms away; HttpOnly scripts. */
function attributes(value: string, maxAge: number, secure: boolean): string {
  const cookie = `${cookieName}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`;
  return secure ? `${cookie}; Secure` : cookie;
}

function sign(secret: string, text: string): string {
  const key = createHmac('sha256', secret).update('kinora session v1').digest();
  return createHmac('sha256', key).update(text).digest('base64url');
}
