/**
 * An address as it is kept and shown: without query, fragment, user name and password, any of which may be a secret.
 * The whole address serves only to fetch.
 *
 * @param text an address with a scheme or one of the hub; a text without a slash is a name, and stays as it is
 */
export function bareAddress(text: string): string {
  const trimmed = text.trim();
  if (!/[/\\]/.test(trimmed)) return trimmed;
  return trimmed.replace(/[?#].*/s, '').replace(/^([a-z\d+.-]+:[/\\]*)[^/\\]*@/i, '$1');
}

/** Whether an address is a loopback address: only this machine reaches it. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address);
  return /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}
