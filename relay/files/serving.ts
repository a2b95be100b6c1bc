import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import fresh from 'fresh';
import parseRange from 'range-parser';
import send from 'send';
import { ApiError } from '../../lib/contract/v3';
import { isDisk } from './blobs';
import type { BlobStore } from './blobs/index';

/** How a blob is presented to browsers. */
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
}

/**
 * Answers GET and HEAD with a blob: Content-Length, ETag, one byte range, and headers under which a
 * file cannot act as a page of ours. Files of the disk are sent by the package `send`; those of a bucket are
 * read by ranges, with the same answers.
 *
 * @throws ApiError `NOT_FOUND`, `STORAGE_DOWN`, before anything was sent
 */
export async function serveBlob(
  request: IncomingMessage,
  response: ServerResponse,
  blobs: BlobStore,
  key: string,
  presentation: Presentation,
): Promise<void> {
  const headers = headersOf(presentation);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  try {
    if (isDisk(blobs)) await serveFile(request, response, blobs.folder, key);
    else await serveObject(request, response, blobs, key);
  } catch (thrown) {
    if (!response.headersSent) for (const name of Object.keys(headers)) response.removeHeader(name);
    throw thrown;
  }
}

/** The headers of every file. */
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
  };
}

function serveFile(
  request: IncomingMessage,
  response: ServerResponse,
  folder: string,
  key: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    response.once('close', resolve);
    // With `root`, since the data folder may be inside one whose name begins with a dot.
    send(request, `/${key}`, {
      root: folder,
      index: false,
      lastModified: false,
      cacheControl: false,
    })
      .on('error', (error: Error & { status?: number }) => {
        if (error.status === 416 && !response.headersSent) {
          response.statusCode = 416;
          response.removeHeader('Content-Type');
          response.setHeader('Content-Length', 0);
          response.end();
        } else if (error.status === 404 || error.status === 412) {
          const code = error.status === 404 ? 'NOT_FOUND' : 'CONFLICT';
          reject(new ApiError(code, undefined, { cause: error }));
        } else {
          reject(new ApiError('STORAGE_DOWN', undefined, { cause: error }));
        }
      })
      .on('directory', () => reject(new ApiError('NOT_FOUND')))
      .pipe(response);
  });
}

async function serveObject(
  request: IncomingMessage,
  response: ServerResponse,
  blobs: BlobStore,
  key: string,
): Promise<void> {
  const found = await blobs.stat(key);
  if (!found) throw new ApiError('NOT_FOUND');
  const size = found.bytes;
  const tag = String(response.getHeader('ETag'));
  response.setHeader('Accept-Ranges', 'bytes');
  if (fresh(request.headers, { etag: tag })) {
    response.statusCode = 304;
    response.removeHeader('Content-Type');
    response.end();
    return;
  }
  const range = rangeOf(request, size, tag);
  if (range === 'outside') {
    response.statusCode = 416;
    response.removeHeader('Content-Type');
    response.setHeader('Content-Range', `bytes */${size}`);
    response.setHeader('Content-Length', 0);
    response.end();
    return;
  }
  if (range) {
    response.statusCode = 206;
    response.setHeader('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
  }
  response.setHeader('Content-Length', range ? range.end - range.start + 1 : size);
  if (request.method === 'HEAD' || size === 0) {
    response.end();
    return;
  }
  const { body } = await blobs.read(key, range && { first: range.start, last: range.end });
  await sendBody(body, response);
}

/** Sends a stream. A reader that disconnects is no error. */
export async function sendBody(
  body: NodeJS.ReadableStream,
  response: ServerResponse,
): Promise<void> {
  // Server and stream both listen for the end of the response: more than Node's default of ten listeners.
  response.setMaxListeners(20);
  try {
    await pipeline(body, response);
  } catch (thrown) {
    // The answer has begun: only a cut connection can signal the failure.
    if (!response.headersSent) throw thrown;
    response.destroy();
  }
}

/** The one byte range of a request (RFC 9110, 14.2); undefined where the whole is to be sent. */
function rangeOf(
  { headers }: IncomingMessage,
  size: number,
  tag: string,
): parseRange.Range | 'outside' | undefined {
  const condition = headers['if-range'];
  if (headers.range === undefined || (condition !== undefined && condition !== tag))
    return undefined;
  const ranges = parseRange(size, headers.range);
  if (ranges === -1) return 'outside';
  return ranges === -2 || ranges.type !== 'bytes' || ranges.length > 1 ? undefined : ranges[0];
}
