import { Agent, type Dispatcher } from 'undici';
import { type Guard, GuardError } from '../relay';
import { checkUrl, hostOf } from './addresses';
import { limitedBody, tooLarge } from './body';
import { toGuardError } from './failure';
import { type Lookup, lookupBySystem, publicLookup } from './lookup';
import { Patience } from './patience';

/** Limits of a call that names none of its own. */
export interface GuardLimits {
  /** Name, connection and TLS of one hop, in ms. Default 5,000. */
  readonly connectMs?: number;
  /** A whole call with its body, in ms. Default 30,000. */
  readonly totalMs?: number;
  /** Longest silence before the head and within the body, in ms. Default 30,000. */
  readonly idleMs?: number;
  /** Largest body. Default 100 MB. */
  readonly maxBytes?: number;
  /** Redirects of a GET or HEAD. Default 5. */
  readonly redirects?: number;
}

/** How a guard is made. */
export interface GuardOptions extends GuardLimits {
  /** Development: `http:` and private addresses as well. */
  readonly allowPrivate: boolean;
  /** Addresses of a name; the operating system's lookup where absent. */
  readonly lookup?: Lookup;
  /** Certificates (PEM) to trust instead of the well-known ones, for receivers with an own authority. */
  readonly ca?: string;
  /** Address of this machine that connections go out from. */
  readonly localAddress?: string;
}

type FetchOptions = NonNullable<Parameters<Guard['fetch']>[1]>;
type Answer = Awaited<ReturnType<Guard['fetch']>>;

const redirectStatuses = [301, 302, 303, 307, 308];
/** Belong to one host and are not told to the next. */
const ownHeaders = ['authorization', 'proxy-authorization', 'cookie'];
/** Undici keeps connecting after a call gave up; this ends it. */
const abandonedConnectMs = 30_000;

/**
 * The one way in which the server calls addresses that callers name: https on the public internet only
 * (v3-api.md §2). One agent checks every looked-up address when it connects; literal addresses are checked
 * by {@link Guard.check} on every hop, since sockets look no literal up.
 *
 * A 3xx of a POST, and one with `redirects: 0`, is an answer like any other. Answers are asked for, and
 * handed on, without compression: the size that is capped is the size that is read.
 */
export function createGuard(options: GuardOptions): Guard {
  const { allowPrivate, lookup = lookupBySystem } = options;
  const idleMs = options.idleMs ?? 30_000;
  const agent = new Agent({
    connect: {
      lookup: publicLookup(lookup, allowPrivate),
      timeout: abandonedConnectMs,
      ...(options.ca !== undefined && { ca: options.ca }),
      ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
    },
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
  });
  const check = (url: string) => checkUrl(url, allowPrivate);

  async function call(first: URL, request: FetchOptions, patience: Patience): Promise<Answer> {
    const { method = 'GET', maxBytes = options.maxBytes ?? 100_000_000 } = request;
    const hops = method === 'POST' ? 0 : (request.redirects ?? options.redirects ?? 5);
    let url = first;
    let headers: Record<string, string> = lowerCase(request.headers ?? {});
    for (let hop = 0; ; hop += 1) {
      patience.signal.throwIfAborted();
      patience.connecting();
      const asked = noticing(agent, patience.connected).request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: { 'user-agent': 'Kinora', ...headers, 'accept-encoding': 'identity' },
        body: request.body ?? null,
        signal: patience.signal,
      });
      // Whichever loses the race may still fail.
      asked.catch(() => undefined);
      const answer = await Promise.race([asked, patience.ended]);
      const location = answer.headers.location;
      if (hops === 0 || !redirectStatuses.includes(answer.statusCode) || location === undefined) {
        return accepted(answer, url, method, maxBytes, patience);
      }
      answer.body.on('error', () => undefined).destroy();
      if (hop === hops) {
        throw new GuardError('redirects', `${hostOf(first)} redirects more than ${hops} times.`);
      }
      url = nextHop(url, String(location), check);
      headers = Object.fromEntries(
        Object.entries(headers).filter(([name]) => !ownHeaders.includes(name)),
      );
    }
  }

  return {
    check,
    async fetch(address, request = {}) {
      const url = check(address);
      const patience = new Patience(
        hostOf(url),
        request.connectMs ?? options.connectMs ?? 5000,
        request.totalMs ?? options.totalMs ?? 30_000,
        request.signal,
      );
      try {
        return await call(url, request, patience);
      } catch (thrown) {
        patience.done();
        throw toGuardError(thrown, hostOf(url));
      }
    },
    close: () => agent.destroy(),
  };
}

function accepted(
  answer: Dispatcher.ResponseData,
  url: URL,
  method: string,
  maxBytes: number,
  patience: Patience,
): Answer {
  const headers = Object.fromEntries(
    Object.entries(answer.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
  );
  const announced = headers['content-length'];
  const bytes = announced !== undefined && /^\d+$/.test(announced) ? Number(announced) : null;
  const body = limitedBody(answer.body, hostOf(url), maxBytes, patience.done);
  if (method !== 'HEAD' && bytes !== null && bytes > maxBytes) {
    body.destroy();
    throw tooLarge(hostOf(url), maxBytes);
  }
  return { status: answer.statusCode, headers, bytes, body };
}

/** @throws GuardError where the next address is refused, or gives up TLS */
function nextHop(from: URL, location: string, check: (url: string) => URL): URL {
  let next: URL;
  try {
    next = new URL(location, from);
  } catch {
    throw new GuardError('refused', `${hostOf(from)} redirects to what is no address.`);
  }
  if (from.protocol === 'https:' && next.protocol !== 'https:') {
    throw new GuardError('refused', `${hostOf(from)} redirects to an address without TLS.`);
  }
  return check(next.href);
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

/** The agent for one call, that says when a connection has been made (or a kept one was found). */
function noticing(agent: Agent, onConnected: () => void): Dispatcher {
  return agent.compose((dispatch) => (options, handler) => {
    return dispatch(options, {
      onRequestStart: (controller, context) => {
        onConnected();
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => handler.onResponseError?.(...given),
    });
  });
}
