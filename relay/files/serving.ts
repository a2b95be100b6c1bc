import fresh from 'fresh';
import parseRange from 'range-parser';
import { ApiError } from '../../lib/contract/v3';
import { streamed } from '../http/reply';
import type { BlobStore } from './blobs';

interface Presentation {
  /** Never guessed from a name. */
  readonly type: string;
  readonly filename: string;
  /** Changes with the bytes; without quotes. */
  readonly tag: string;
  /** `cross-origin` for what other sites may embed; `same-origin` for what only our pages read. */
  readonly readers: 'cross-origin' | 'same-origin';
  /** Seconds that a browser may keep it. */
  readonly maxAge: number;
  /** Further ones. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Answers GET and HEAD of a blob: Content-Length, ETag, conditions (RFC 9110, 13), one byte range (14), and headers under
 * which a file cannot act as a page of ours.
 *
 * @throws ApiError `NOT_FOUND`, `PRECONDITION_FAILED`, `STORAGE_DOWN`, before anything was sent
 */
export async function serveBlob(
  { method, headers }: Request,
  blobs: BlobStore,
  key: string,
  presentation: Presentation,
): Promise<Response> {
  const stats = await blobs.stat(key);
  if (!stats) throw new ApiError('NOT_FOUND');
  const { bytes } = stats;
  const { 'Content-Type': _, ...always } = headersOf(presentation);
  const tag = `"${presentation.tag}"`;
  if (!isMatch(headers.get('if-match'), tag)) throw new ApiError('PRECONDITION_FAILED');
  const common = { ...always, 'Accept-Ranges': 'bytes' };
  if (fresh(Object.fromEntries(headers), { etag: tag })) {
    return new Response(null, { status: 304, headers: common });
  }
  const range = rangeOf(headers, bytes, tag);
  if (range === 'outside') {
    const none = { 'Content-Range': `bytes */${bytes}`, 'Content-Length': '0' };
    return new Response(null, { status: 416, headers: { ...common, ...none } });
  }
  const { start: first = 0, end: last = bytes - 1 } = range ?? {};
  const hasBody = method !== 'HEAD' && bytes > 0;
  return new Response(hasBody ? streamed((await blobs.read(key, { first, last })).body) : null, {
    status: range ? 206 : 200,
    headers: {
      ...common,
      'Content-Type': presentation.type,
      'Content-Length': `${last - first + 1}`,
      ...(range && { 'Content-Range': `bytes ${first}-${last}/${bytes}` }),
    },
  });
}

export function headersOf(presentation: Presentation): Record<string, string> {
  const name = encodeURIComponent(presentation.filename).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return {
    'Content-Type': presentation.type,
    'Content-Disposition': `inline; filename*=UTF-8''${name}`,
    ETag: `"${presentation.tag}"`,
    'Cache-Control': `private, max-age=${presentation.maxAge}`,
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "sandbox; default-src 'none'",
    'Cross-Origin-Resource-Policy': presentation.readers,
    ...(presentation.readers === 'cross-origin' && {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': 'Content-Length, Content-Range, ETag, Accept-Ranges',
    }),
    ...presentation.headers,
  };
}

/** `If-Match` compares strongly: a weak tag of a caller never matches (RFC 9110, 8.8.3.2 and 13.1.1). */
function isMatch(condition: string | null, tag: string): boolean {
  if (condition === null || condition.trim() === '*') return true;
  return condition.split(',').some((entry) => entry.trim() === tag);
}

/**
 * The one byte range of a request (RFC 9110, 14.2); undefined where the whole is to be sent. `If-Range` compares
 * strongly too, and a date there never matches, as no date is sent. A suffix that is longer than the file is the whole
 * file (14.1.2); `range-parser` calls it unsatisfiable.
 */
function rangeOf(
  headers: Headers,
  size: number,
  tag: string,
): parseRange.Range | 'outside' | undefined {
  const range = headers.get('range');
  const condition = headers.get('if-range');
  if (range === null || (condition !== null && condition !== tag)) return undefined;
  const within = range.replace(/([=,]\s*)-(\d+)/g, (suffix, start: string, length) =>
    Number(length) > size ? `${start}0-` : suffix,
  );
  const ranges = parseRange(size, within);
  if (ranges === -1) return 'outside';
  return ranges === -2 || ranges.type !== 'bytes' || ranges.length > 1 ? undefined : ranges[0];
}
