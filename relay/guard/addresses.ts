import type { LookupAddress } from 'node:dns';
import { lookup as systemLookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { causesOf } from '../store/store';

export class GuardError extends Error {
  override readonly name = 'GuardError';
  constructor(
    readonly reason:
      | 'refused'
      | 'unreachable'
      | 'timeout'
      | 'too-large'
      | 'status'
      | 'busy'
      | 'redirects',
    /** One sentence without the address's secrets. */
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  get isPassing(): boolean {
    return this.reason === 'unreachable' || this.reason === 'timeout' || this.reason === 'busy';
  }
}

/** Statuses after which the next try may succeed, besides 5xx: Request Timeout, Too Early, Too Many Requests. */
const passingStatuses: readonly number[] = [408, 425, 429];

export function statusError(url: string, status: number): GuardError {
  const isPassing = status >= 500 || passingStatuses.includes(status);
  const sentence = `${new URL(url).host} answered ${status}.`;
  return new GuardError(isPassing ? 'busy' : 'status', sentence);
}

/** Error codes of Node, OpenSSL and undici, with the rest of the sentence about the host. */
const sentences: readonly (readonly [code: RegExp, rest: string, reason: GuardError['reason']])[] =
  [
    [/^(ENOTFOUND|EAI_\w+|ENODATA)$/, 'could not be found.', 'unreachable'],
    [/^ECONNREFUSED$/, 'refused the connection.', 'unreachable'],
    [/^UND_ERR_CONNECT_TIMEOUT$|^ETIMEDOUT$/, 'could not be reached in time.', 'timeout'],
    [/^UND_ERR_HEADERS_TIMEOUT$/, 'did not answer in time.', 'timeout'],
    [/^UND_ERR_BODY_TIMEOUT$/, 'stopped answering.', 'timeout'],
    [/^UND_ERR_HEADERS_OVERFLOW$|^HPE_/, 'did not answer in HTTP.', 'unreachable'],
    [/CERT|SIGNATURE|^ERR_TLS_|^EPROTO$|^ERR_SSL_/, 'has no valid TLS certificate.', 'unreachable'],
    [
      /^ECONNRESET$|^EPIPE$|^UND_ERR_SOCKET$|CONTENT_LENGTH/,
      'broke off the connection.',
      'unreachable',
    ],
  ];

/**
 * What went wrong, as one sentence that names at most the host. A refusal by the lookup is a cause of the
 * socket's error.
 */
export function toGuardError(thrown: unknown, host: string): GuardError {
  for (const error of causesOf(thrown)) {
    if (error instanceof GuardError) return error;
  }
  for (const error of causesOf(thrown)) {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    const known = sentences.find(([pattern]) => pattern.test(code));
    if (known) return new GuardError(known[2], `${host} ${known[1]}`, { cause: thrown });
  }
  return new GuardError('unreachable', `${host} could not be reached.`, { cause: thrown });
}

/** Longest accepted URL, in characters. Signed links of object stores stay under 2,000. */
const maxUrlLength = 4096;

/**
 * Names that never mean a host of the internet: loopback (RFC 6761), multicast DNS (RFC 6762), the
 * private-use top level of ICANN and home networks (RFC 8375). They are refused without a lookup.
 */
const privateSuffixes = ['localhost', 'localdomain', 'local', 'internal', 'home.arpa'];

/** The part of IPv6 that is allocated to the internet (IANA IPv6 address space registry). */
const globalUnicast = ipaddr.parseCIDR('2000::/3');

/**
 * Whether an IP address is one of the public internet.
 *
 * `range()` of ipaddr.js calls the deprecated `::a.b.c.d` forms unicast, so IPv6 must lie in 2000::/3 too.
 * Forms that carry an IPv4 address (NAT64, 6to4, Teredo) have ranges of their own and are refused;
 * `::ffff:a.b.c.d` counts as the IPv4 address.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || parsed.match(globalUnicast);
}

/** The host for messages; at most a line. */
export function hostOf(url: URL): string {
  return url.hostname.slice(0, 100);
}

/**
 * Checks form, scheme and literal address of a URL. The URL parser normalises decimal, hexadecimal, octal
 * and short IPv4 forms, full-width digits and a final dot (WHATWG URL Standard, host parsing).
 * Every port is allowed: receivers on :8443 are common, and a server that speaks no TLS fails the handshake.
 *
 * @param allowPrivate for development: also `http:` and private hosts
 * @param allowHttp also `http:` to public hosts
 * @throws GuardError `refused`
 */
export function checkUrl(text: string, allowPrivate: boolean, allowHttp = false): URL {
  if (text.length > maxUrlLength) {
    throw new GuardError('refused', `The address is longer than ${maxUrlLength} characters.`);
  }
  if (!URL.canParse(text)) {
    throw new GuardError('refused', 'The address is not a URL that can be read.');
  }
  const url = new URL(text);
  const isHttp = url.protocol === 'http:' && (allowPrivate || allowHttp);
  if (url.protocol !== 'https:' && !isHttp) {
    throw new GuardError('refused', 'The address does not start with https://.');
  }
  if (url.username !== '' || url.password !== '') {
    throw new GuardError('refused', 'The address carries a user name or a password.');
  }
  if (!allowPrivate && !isPublicHost(url.hostname)) throw notPublic(hostOf(url));
  url.hash = '';
  return url;
}

function notPublic(host: string): GuardError {
  return new GuardError('refused', `${host} is not a host of the public internet.`);
}

function isPublicHost(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '');
  if (ipaddr.isValid(bare)) return isPublicAddress(bare);
  const name = hostname.replace(/\.+$/, '').toLowerCase();
  // A single label is a name of this network, such as "intranet" or "metadata".
  if (!name.includes('.')) return false;
  return !privateSuffixes.some((suffix) => name.endsWith(`.${suffix}`));
}

export type Lookup = (hostname: string) => Promise<readonly LookupAddress[]>;

export const lookupBySystem: Lookup = (hostname) => systemLookup(hostname, { all: true });

/**
 * The lookup of a socket that is about to connect. It returns only public addresses, and the socket connects
 * to one of them: no second lookup comes between check and connection, so DNS rebinding has no effect.
 */
export function publicLookup(lookup: Lookup, allowPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname).then(
      (answers) => {
        const allowed = answers.filter(({ address }) => allowPrivate || isPublicAddress(address));
        const [first] = allowed;
        if (first === undefined) {
          const name = hostname.slice(0, 100);
          const none = new GuardError('unreachable', `${name} has no address.`);
          callback(answers.length === 0 ? none : notPublic(name), '', 0);
        } else if (options.all === true) callback(null, [...allowed]);
        else callback(null, first.address, first.family);
      },
      (cause: NodeJS.ErrnoException) => callback(cause, '', 0),
    );
  };
}
