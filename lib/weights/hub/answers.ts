import { KinoraError, retryAfterMs } from '../../contract';
import { type Clock, Transient } from './retry';

/**
 * Sends one request and sorts out every answer that is no content. Redirects are followed by the
 * browser, which keeps the Range header and asks for no preflight because such a range is simple.
 *
 * @param subject for messages
 * @param page of the repository, where its makers' terms can be accepted; null for files that have none
 * @throws Transient for what may pass: no connection, 408, 429, 5xx, a refusal by the storage
 * @throws KinoraError `HUB_NOT_FOUND`, `HUB_DENIED`, `HUB_ANSWER_INVALID`
 */
export async function request(
  send: typeof fetch,
  clock: Clock,
  subject: string,
  url: string | URL,
  page: string | null,
  init: RequestInit,
): Promise<Response> {
  let response: Response;
  try {
    response = await send(url, {
      ...init,
      credentials: 'omit',
      referrerPolicy: 'no-referrer',
      // Gigabytes are not for the browser's cache, and its lock would put ranges of a file in a row.
      cache: 'no-store',
    });
  } catch (cause) {
    if (init.signal?.aborted) throw init.signal.reason;
    throw new Transient('HUB_UNREACHABLE', 'there is no connection', null, { cause });
  }
  if (response.ok || response.status === 416) return response;
  // A body that has ended needs no cancel.
  await response.body?.cancel().catch(() => undefined);
  throw refusal(response, clock, subject, page, url);
}

function refusal(
  response: Response,
  clock: Clock,
  subject: string,
  page: string | null,
  asked: string | URL,
): Error {
  const { status, headers } = response;
  const reason = headers.get('x-error-code') ?? '';
  const wait = retryAfterMs(headers.get('retry-after'), clock.now());
  if (status === 429) {
    return new Transient('HUB_BUSY', 'the server is asked too often (429)', wait, {}, true);
  }
  if (status === 503) return new Transient('HUB_BUSY', 'the server is overloaded (503)', wait);
  if (status === 408 || status >= 500) {
    return new Transient('HUB_UNREACHABLE', `the server answers ${status}`, wait);
  }
  // The hub answers 401 for repositories that do not exist, and says so in a header.
  if (status === 404 || status === 410 || /NotFound$/.test(reason)) {
    return new KinoraError(
      'HUB_NOT_FOUND',
      `There is no ${subject} (the server answers ${status}).`,
    );
  }
  // The hub signs the storage's addresses for a time. One that expired is refused, and the next
  // request to the hub gets a new one.
  const isElsewhere =
    response.redirected &&
    response.url !== '' &&
    new URL(response.url).origin !== new URL(asked).origin;
  if (isElsewhere && [400, 401, 403].includes(status)) {
    return new Transient('HUB_DENIED', `the storage refuses the hub's address (${status})`, wait);
  }
  if (status === 401 || status === 403 || reason === 'GatedRepo') {
    const sentence = `Access to ${subject} is refused (${status}).`;
    if (page === null) return new KinoraError('HUB_DENIED', sentence);
    return new KinoraError(
      'HUB_DENIED',
      `${sentence} The makers ask you to accept their terms at ${page}`,
      { remedy: 'Accept them there, then enter a token of your account beside the hub address.' },
    );
  }
  return new KinoraError('HUB_ANSWER_INVALID', `${subject}: the server answers ${status}.`);
}

/** A `Content-Range` that could be read. */
export interface ContentRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  readonly size: number | null;
}

/** Reads `bytes 0-9/1234`; null where there is none, or none that can be read. */
export function contentRange(headers: Headers): ContentRange | null {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(headers.get('content-range') ?? '');
  if (!match) return null;
  const size = match[3] === '*' ? null : Number(match[3]);
  return { start: Number(match[1]), end: Number(match[2]) + 1, size };
}

/** Size of a 416 answer's file, from its `Content-Range`. */
export function sizeOfRefusedRange(headers: Headers): number | null {
  const match = /^bytes \*\/(\d+)$/.exec(headers.get('content-range') ?? '');
  return match ? Number(match[1]) : null;
}

/** An etag without its quotes and without the mark of a weak one. */
export function plainEtag(header: string | null): string | null {
  return header?.replace(/^W\//, '').replaceAll('"', '') || null;
}

/** Length of an answer that is not compressed on the way; null where the header is missing. */
export function bodyLength(headers: Headers): number | null {
  if (headers.get('content-encoding')) return null;
  const length = headers.get('content-length');
  return length === null ? null : Number(length);
}
