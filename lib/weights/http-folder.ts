import { KinoraError } from '../contract';
import {
  blobFile,
  checkPath,
  checkRange,
  type ModelFolder,
  parseModelJson,
  truncated,
  type WeightFile,
} from './source';

/** Bytes asked for when a file is opened: the size comes with them, and most headers fit in. */
const openingBytes = 65_536;

/** Options of {@link httpFolder}. */
export interface HttpFolderOptions {
  /** The global `fetch` when absent. */
  readonly fetch?: typeof fetch;
  /** Ends every request of this folder. */
  readonly signal?: AbortSignal;
}

/**
 * A model folder on a web server, read by range requests.
 *
 * A server that does not know ranges, or answers a small file whole, works too: its body is kept, so
 * that every file crosses the wire at most once.
 *
 * @param baseUrl the folder; a missing slash at its end is added
 */
export function httpFolder(baseUrl: URL, options: HttpFolderOptions = {}): ModelFolder {
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  const base = new URL(baseUrl);
  if (!base.pathname.endsWith('/')) base.pathname += '/';

  async function get(path: string, range?: string): Promise<Response> {
    const url = new URL(checkPath(path).split('/').map(encodeURIComponent).join('/'), base);
    const init: RequestInit = {};
    if (range !== undefined) init.headers = { Range: range };
    if (options.signal !== undefined) init.signal = options.signal;
    let response: Response;
    try {
      response = await send(url, init);
    } catch (cause) {
      if (options.signal?.aborted) throw cause;
      throw new KinoraError('FILE_UNREADABLE', `${path} could not be fetched.`, { cause });
    }
    // No file of a model is a web page: servers of single-page apps answer unknown paths with one.
    const isPage = response.headers.get('content-type')?.startsWith('text/html') ?? false;
    if (response.status === 404 || response.status === 410 || (response.ok && isPage)) {
      await response.body?.cancel();
      throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing from the model folder.`);
    }
    if (!response.ok && response.status !== 416) {
      await response.body?.cancel();
      throw new KinoraError(
        'FILE_UNREADABLE',
        `${path} could not be fetched: the server answers ${response.status}.`,
      );
    }
    return response;
  }

  async function text(path: string): Promise<string> {
    return (await wholeBody(path, await get(path))).text();
  }

  return {
    text,
    json: async (path) => parseModelJson(path, await text(path)),
    async exists(path) {
      try {
        const response = await get(path, 'bytes=0-0');
        await response.body?.cancel();
        return true;
      } catch (error) {
        if (error instanceof KinoraError && error.code === 'MODEL_FILE_MISSING') return false;
        throw error;
      }
    },
    open: (path) => openByRanges(path, get),
  };
}

/** Opens a file with its first range request; a whole answer is kept instead. */
async function openByRanges(
  path: string,
  get: (path: string, range?: string) => Promise<Response>,
): Promise<WeightFile> {
  const first = await get(path, `bytes=0-${openingBytes - 1}`);
  // "No such range" for the very first byte: the file is empty.
  if (first.status === 416) return blobFile(path, new Blob([]));
  if (first.status !== 206) return blobFile(path, await wholeBody(path, first));

  const size = totalSize(path, first);
  const head = await exactBody(path, first, Math.min(size, openingBytes));
  let whole: WeightFile | undefined;

  return {
    name: path,
    size,
    async read(start, end) {
      checkRange(path, size, start, end);
      // Also an empty range, which HTTP cannot ask for.
      if (end <= head.length || start === end) return head.slice(start, end);
      if (whole) return whole.read(start, end);
      const response = await get(path, `bytes=${start}-${end - 1}`);
      if (response.status === 416) throw truncated(path, end, start);
      if (response.status === 206) {
        if (totalSize(path, response) !== size) throw changed(path);
        return exactBody(path, response, end - start);
      }
      whole = blobFile(path, await wholeBody(path, response));
      if (whole.size !== size) throw changed(path);
      return whole.read(start, end);
    },
  };
}

function changed(path: string): KinoraError {
  return new KinoraError('MODEL_FILE_INVALID', `${path} changed while it was being read.`);
}

/** The size of the whole file, from `Content-Range: bytes 0-9/1234`. */
function totalSize(path: string, response: Response): number {
  const match = /^bytes \d+-\d+\/(\d+)$/.exec(response.headers.get('content-range') ?? '');
  if (match) return Number(match[1]);
  throw new KinoraError(
    'FILE_UNREADABLE',
    `${path} cannot be read by ranges: the server does not tell its size.`,
  );
}

async function exactBody(path: string, response: Response, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(await (await body(path, response)).arrayBuffer());
  if (bytes.length !== length) throw truncated(path, length, bytes.length);
  return bytes;
}

async function wholeBody(path: string, response: Response): Promise<Blob> {
  const blob = await body(path, response);
  // Content-Length counts encoded bytes, so it says nothing about a compressed answer.
  const declared = response.headers.get('content-encoding')
    ? null
    : response.headers.get('content-length');
  if (declared !== null && Number(declared) > blob.size) {
    throw truncated(path, Number(declared), blob.size);
  }
  return blob;
}

async function body(path: string, response: Response): Promise<Blob> {
  try {
    return await response.blob();
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw new KinoraError('MODEL_FILE_TRUNCATED', `${path} broke off while it was being read.`, {
      cause,
    });
  }
}
