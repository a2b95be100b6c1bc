import ipaddr from 'ipaddr.js';
import { GuardError } from '../relay';

/** Longest address that is looked at, in characters. Signed links of object stores stay under 2,000. */
const maxUrlLength = 4096;

/**
 * Names that never mean a host of the internet: loopback (RFC 6761), multicast DNS (RFC 6762), the
 * private-use top level of ICANN and home networks (RFC 8375). They are refused before any lookup.
 */
const privateSuffixes = ['localhost', 'localdomain', 'local', 'internal', 'home.arpa'];

/** All of the IPv6 internet that has been given out so far (RFC 4291 §2.4). */
const globalUnicast = ipaddr.parseCIDR('2000::/3');

/**
 * Whether an IP address is one of the public internet.
 *
 * `range()` alone calls the deprecated `::a.b.c.d` forms unicast, so IPv6 must lie in 2000::/3 as well.
 * Forms that carry an IPv4 address inside (NAT64, 6to4, Teredo) have ranges of their own and are refused
 * whatever they carry; `::ffff:a.b.c.d` counts as the IPv4 address (v3-api.md §2).
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(globalUnicast);
}

/** The host as messages name it; never longer than a line. */
export function hostOf(url: URL): string {
  return url.hostname.slice(0, 100);
}

/**
 * Form, scheme and literal address of a URL. The URL parser has already turned decimal, hexadecimal, octal
 * and short IPv4 forms, full-width digits and a dot at the end of an IPv4 address into the plain form.
 * Every port is allowed: receivers on :8443 are common, and TLS comes first, so that no other protocol
 * can be spoken to.
 *
 * @param allowPrivate development: `http:` and private hosts as well
 * @throws GuardError `refused`
 */
export function checkUrl(text: string, allowPrivate: boolean): URL {
  if (text.length > maxUrlLength) {
    throw new GuardError('refused', `The address is longer than ${maxUrlLength} characters.`);
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new GuardError('refused', 'The address is not a URL that can be read.');
  }
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:')) {
    throw new GuardError('refused', 'The address does not start with https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new GuardError('refused', 'The address carries a user name or a password.');
  }
  if (!allowPrivate && !isPublicHost(url.hostname)) throw notPublic(url);
  url.hash = '';
  return url;
}

/** The refusal of a host that is not public, by form or by lookup. */
export function notPublic(url: URL): GuardError {
  return new GuardError('refused', `${hostOf(url)} is not a host of the public internet.`);
}

function isPublicHost(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (ipaddr.isValid(bare)) return isPublicAddress(bare);
  const name = hostname.replace(/\.+$/, '').toLowerCase();
  // One label alone is a name of this network: "intranet", "metadata".
  if (!name.includes('.')) return false;
  return !privateSuffixes.some((suffix) => name.endsWith(`.${suffix}`));
}
