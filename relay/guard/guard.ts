import { Readable } from 'node:stream';
import { Agent, type Dispatcher } from 'undici';
import { userAgent } from '../../lib/contract/user-agent';
import {
  checkUrl,
  GuardError,
  hostOf,
  type Lookup,
  lookupBySystem,
  publicLookup,
  statusError,
  toGuardError,
} from './addresses';

export interface GuardedAnswer {
  readonly status: number;
  /** Of the last hop. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number | null;
  /** Uncompressed. A caller that does not read it to its end destroys it. */
  readonly body: Readable;
}

/** The request, and limits of this call. */
export interface GuardedRequest {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Also `http:`, to public hosts; a hop from https to http is refused all the same. */
  readonly http?: boolean;
  /** Redirects to follow; 0 returns a 3xx as the answer. Default 5. */
  readonly redirects?: number;
  /** Largest body; a longer one ends the stream with a GuardError `too-large`. Default 100 MB. */
  readonly maxBytes?: number;
  /** The whole call with its body, in ms. Default 30,000. */
  readonly totalMs?: number;
  /** Until the answer of each hop begins, in ms. Default: that of the guard. */
  readonly answerMs?: number;
  readonly signal?: AbortSignal;
}

export interface GuardOptions {
  /** Name lookup, connection and TLS of one hop, in ms. Default 5,000. */
  readonly connectMs?: number;
  /** Longest silence before the head and within the body, in ms. Default 30,000. */
  readonly idleMs?: number;
  /** For development: also `http:` and private addresses. */
  readonly allowPrivate: boolean;
  /** Addresses of a name; the operating system's lookup where absent. */
  readonly lookup?: Lookup;
  /** Certificates (PEM) to trust instead of the public authorities. */
  readonly ca?: string;
  /** How it names itself. */
  readonly userAgent?: string;
  /** Local address of outgoing connections. */
  readonly localAddress?: string;
}

const redirectStatuses = [301, 302, 303, 307, 308];
/** Headers for one host, not sent to the next. */
const ownHeaders = ['authorization', 'proxy-authorization', 'cookie'];

/**
 * A guard over one undici agent. The agent's lookup checks the addresses of names when it connects; literal
 * addresses never reach a lookup, so {@link Guard.check} looks at them on every hop. Answers are requested
 * uncompressed, so the size that is limited is the size that is read.
 */
export function createGuard(options: GuardOptions) {
  const { allowPrivate, lookup = lookupBySystem } = options;
  const idleMs = options.idleMs ?? 30_000;
  const agent = new Agent({
    connect: {
      lookup: publicLookup(lookup, allowPrivate),
      timeout: options.connectMs ?? 5000,
      ...(options.ca !== undefined && { ca: options.ca }),
    },
    // Among the options of `connect` undici replaces it by its own.
    ...(options.localAddress !== undefined && { localAddress: options.localAddress }),
    headersTimeout: idleMs,
    bodyTimeout: idleMs,
  });
  /** Checks form, scheme and literal addresses; names are checked when they are fetched. @throws GuardError */
  const check = (url: string, { http }: Pick<GuardedRequest, 'http'> = {}): URL =>
    checkUrl(url, allowPrivate, http);

  async function call(
    first: URL,
    request: GuardedRequest,
    deadline: Deadline,
  ): Promise<GuardedAnswer> {
    const { method = 'GET', maxBytes = 100_000_000, redirects = 5 } = request;
    const hops = method === 'POST' ? 0 : redirects;
    let url = first;
    const headers = new Headers(request.headers);
    headers.set('user-agent', options.userAgent ?? userAgent());
    headers.set('accept-encoding', 'identity');
    for (let hop = 0; ; hop += 1) {
      deadline.signal.throwIfAborted();
      const pending = agent.request({
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers: Object.fromEntries(headers),
        body: request.body ?? null,
        signal: deadline.signal,
        headersTimeout: request.answerMs ?? idleMs,
      });
      // The loser of the race may still reject.
      pending.catch(() => undefined);
      const answer = await Promise.race([pending, deadline.ended]);
      const location = answer.headers.location;
      if (hops === 0 || !redirectStatuses.includes(answer.statusCode) || location === undefined) {
        return accepted(answer, url, maxBytes, deadline);
      }
      answer.body.on('error', () => undefined).destroy();
      if (hop === hops) {
        throw new GuardError('redirects', `${hostOf(first)} redirects more than ${hops} times.`);
      }
      url = nextHop(url, String(location), (next) => check(next, request));
      for (const name of ownHeaders) headers.delete(name);
    }
  }

  return {
    check,
    /**
     * Sends one request. Redirects of a GET are followed, each hop checked, without the credentials;
     * a 3xx of a POST is the answer.
     *
     * @throws GuardError
     */
    async fetch(address: string, request: GuardedRequest = {}): Promise<GuardedAnswer> {
      const url = check(address, request);
      const deadline = startDeadline(hostOf(url), request);
      return await call(url, request, deadline).catch((thrown: unknown) => {
        throw deadline.errorOf(thrown);
      });
    },
    close: (): Promise<void> => agent.destroy(),
  };
}
/** The only way in which the server calls addresses that callers name. */
export type Guard = ReturnType<typeof createGuard>;

/** The answer of a GET with status 200. @throws GuardError, also for another status */
export async function fetchOk(
  guard: Pick<Guard, 'fetch'>,
  url: string,
  request: GuardedRequest,
): Promise<GuardedAnswer> {
  const answer = await guard.fetch(url, request);
  if (answer.status === 200) return answer;
  answer.body.destroy();
  throw statusError(url, answer.status);
}

/** The end of one call over all its hops, by its time limit or its caller. */
function startDeadline(host: string, { totalMs = 30_000, signal: stop }: GuardedRequest) {
  const late = AbortSignal.timeout(totalMs);
  const signal = AbortSignal.any(stop ? [late, stop] : [late]);
  // A socket that is still connecting does not react to the signal.
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  // No caller may be waiting when it rejects.
  ended.catch(() => undefined);
  const errorOf = (thrown: unknown): GuardError => {
    if (stop?.aborted) return new GuardError('unreachable', `The call of ${host} was stopped.`);
    if (late.aborted) return new GuardError('timeout', `${host} took too long to answer.`);
    return toGuardError(thrown, host);
  };
  return { signal, ended, errorOf };
}
type Deadline = ReturnType<typeof startDeadline>;

function accepted(
  answer: Dispatcher.ResponseData,
  url: URL,
  maxBytes: number,
  deadline: Deadline,
): GuardedAnswer {
  const headers = Object.fromEntries(
    Object.entries(answer.headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]),
  );
  const announced = headers['content-length'];
  const bytes = announced !== undefined && /^\d+$/.test(announced) ? Number(announced) : null;
  const body = limitedBody(answer.body, hostOf(url), maxBytes, deadline);
  if (bytes !== null && bytes > maxBytes) {
    body.destroy();
    throw tooLarge(hostOf(url), maxBytes);
  }
  return { status: answer.statusCode, url: url.href, headers, bytes, body };
}

/** @throws GuardError where the next address is refused, or has no TLS after one that had */
function nextHop(from: URL, location: string, check: (url: string) => URL): URL {
  if (!URL.canParse(location, from)) {
    throw new GuardError('refused', `${hostOf(from)} redirects to an address that cannot be read.`);
  }
  const next = new URL(location, from);
  if (from.protocol === 'https:' && next.protocol !== 'https:') {
    throw new GuardError('refused', `${hostOf(from)} redirects to an address without TLS.`);
  }
  return check(next.href);
}

/**
 * An answer's body that ends with a GuardError when it is longer than allowed, breaks off or takes too
 * long. Bytes are counted as they arrive, as the announced length may be wrong.
 */
function limitedBody(
  source: Readable,
  host: string,
  maxBytes: number,
  { errorOf }: Deadline,
): Readable {
  // An unread body may still fail; an unhandled error would end the process.
  source.on('error', () => undefined);
  async function* limited() {
    let bytes = 0;
    try {
      for await (const chunk of source) {
        bytes += (chunk as Uint8Array).byteLength;
        if (bytes > maxBytes) throw tooLarge(host, maxBytes);
        yield chunk;
      }
    } catch (thrown) {
      throw errorOf(thrown);
    }
  }
  return Readable.from(limited(), { objectMode: false }).on('close', () => source.destroy());
}

function tooLarge(host: string, maxBytes: number): GuardError {
  const bytes = maxBytes.toLocaleString('en');
  return new GuardError('too-large', `The answer of ${host} is larger than ${bytes} bytes.`);
}
