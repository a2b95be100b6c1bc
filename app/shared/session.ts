import { readText, writeText } from './stored-text';

/*
 * The time until which the session cookie may be valid, in this browser's storage. Scripts cannot read the
 * cookie, and a request without a session would print an error in the browser's console.
 */
export const sessionKey = 'kinora-session-until';
const sessionMs = 7 * 24 * 3_600_000;

/** Called after a sign-in. */
export function rememberSession(): void {
  writeText(sessionKey, String(Date.now() + sessionMs));
}

/** Called after a sign-out, and when the server says that there is no session. */
export function forgetSession(): void {
  writeText(sessionKey, null);
}

/** Whether a request with the session's cookie is worth a try. */
export function mayBeSignedIn(): boolean {
  return Number(readText(sessionKey) ?? 0) > Date.now();
}

/** Address of the Keys page that leads back to the share of a video, by the id of its prediction, after signing in. */
export const signInToShare = (id: string): string => `/keys?sharing=${id}`;

/** The id in {@link signInToShare}, also in the address of the studio that it leads back to; null without one. */
export const sharedAfterSignIn = (): string | null =>
  new URLSearchParams(location.search).get('sharing');
