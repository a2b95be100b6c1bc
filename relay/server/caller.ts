import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Config } from '../config';

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
