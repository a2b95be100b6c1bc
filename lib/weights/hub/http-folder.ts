import { KinoraError } from '../../contract';
import {
  blobFile,
  checkPath,
  checkRange,
  type ModelFolder,
  parseModelJson,
  truncated,
  type WeightFile,
} from '../formats/source';
import { type Clock, systemClock } from './retry';

/** Bytes asked for when a file is opened: the size comes with them, and most headers fit in. */
const openingBytes = 65_536;
/** A file up to this size is fetched whole when more than its beginning is read: one request, not one for each tensor. */
const wholeBytes = 16 * 2 ** 20;
/** Attempts at one request: with the waits about eight seconds, in which a server can be restarted. */
const attempts = 6;
/** Before the second attempt, in milliseconds; doubles with each further one. */
const firstDelayMs = 250;

/** Options of {@link httpFolder}. */
export interface HttpFolderOptions {
  /** The global `fetch` when absent. */
  readonly fetch?: typeof fetch;
  /** Paths of all files of the folder; when absent, the server is asked whether a file exists. */
  readonly files?: readonly string[] | undefined;
  /** Ends every request of this folder. */
  readonly signal?: AbortSignal;
  /** For the waits between attempts; for tests. */
  readonly clock?: Pick<Clock, 'sleep'>;
}

/** No connection, a cut one, or an answer of 500 or more: the request is made again. */
class TransientFailure extends Error {
  /** @param failure what it becomes when it does not pass */
  constructor(readonly failure: KinoraError) {
    super(failure.message, { cause: failure });
  }
}

/** Does something once more where it was {@link TransientFailure}. */
type Trying = <T>(work: () => Promise<T>) => Promise<T>;

/**
 * A model folder on a web server, read by range requests.
 *
 * A server that does not know ranges, or answers a small file whole, works too: its body is kept, so
 * that every file crosses the wire at most once. A server that is away for a moment is asked again.
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
      const sentence = `${path} could not be fetched.`;
      throw new TransientFailure(new KinoraError('FILE_UNREADABLE', sentence, { cause }));
    }
    // No file of a model is a web page: servers of single-page apps answer unknown paths with one.
    const isPage = response.headers.get('content-type')?.startsWith('text/html') ?? false;
    if (response.status === 404 || response.status === 410 || (response.ok && isPage)) {
      await response.body?.cancel();
      throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing from the model folder.`);
    }
    if (!response.ok && response.status !== 416) {
      await response.body?.cancel();
      const sentence = `${path} could not be fetched: the server answers ${response.status}.`;
      const failure = new KinoraError('FILE_UNREADABLE', sentence);
      throw response.status >= 500 ? new TransientFailure(failure) : failure;
    }
    return response;
  }

  const { sleep } = options.clock ?? systemClock;
  const trying: Trying = async (work) => {
    for (let tried = 1; ; tried++) {
      try {
        return await work();
      } catch (thrown) {
        if (!(thrown instanceof TransientFailure)) throw thrown;
        if (tried === attempts) throw thrown.failure;
        await sleep(firstDelayMs * 2 ** (tried - 1), options.signal);
      }
    }
  };

  async function text(path: string): Promise<string> {
    const blob = await trying(async () => wholeBody(path, await get(path)));
    return blob.text();
  }

  return {
    text,
    json: async (path) => parseModelJson(path, await text(path)),
    async exists(path) {
      if (options.files) return options.files.includes(path);
      try {
        const response = await trying(() => get(path, 'bytes=0-0'));
        await response.body?.cancel();
        return true;
      } catch (error) {
        if (error instanceof KinoraError && error.code === 'MODEL_FILE_MISSING') return false;
        throw error;
      }
    },
    open: (path) => openByRanges(path, get, trying),
  };
}

/** Opens a file with its first range request; a whole answer is kept instead. */
async function openByRanges(
  path: string,
  get: (path: string, range?: string) => Promise<Response>,
  trying: Trying,
): Promise<WeightFile> {
  const opened = await trying(async () => {
    const first = await get(path, `bytes=0-${openingBytes - 1}`);
    // "No such range" for the very first byte: the file is empty.
    if (first.status === 416) return new Blob([]);
    if (first.status !== 206) return wholeBody(path, first);
    const size = totalSize(path, first);
    return { size, head: await exactBody(path, first, Math.min(size, openingBytes)) };
  });
  if (opened instanceof Blob) return blobFile(path, opened);

  const { size, head } = opened;
  /** The body of a server that forgot ranges. */
  let body: WeightFile | undefined;
  /** All bytes of a small file. */
  let whole: Promise<Uint8Array> | undefined;

  const fetchRange = (start: number, end: number) =>
    trying(async () => {
      const response = await get(path, `bytes=${start}-${end - 1}`);
      if (response.status === 416) throw truncated(path, end, start);
      if (response.status === 206) {
        if (totalSize(path, response) !== size) throw changed(path);
        return exactBody(path, response, end - start);
      }
      const answer = blobFile(path, await wholeBody(path, response));
      if (answer.size !== size) throw changed(path);
      body = answer;
      return answer.read(start, end);
    });

  return {
    name: path,
    size,
    async read(start, end) {
      checkRange(path, size, start, end);
      // Also an empty range, which HTTP cannot ask for.
      if (end <= head.length || start === end) return head.slice(start, end);
      if (body) return body.read(start, end);
      if (size > wholeBytes) return fetchRange(start, end);
      whole ??= fetchRange(0, size).catch((thrown: unknown) => {
        whole = undefined;
        throw thrown;
      });
      return (await whole).slice(start, end);
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
  const bytes = new Uint8Array(await (await bodyOf(path, response)).arrayBuffer());
  if (bytes.length !== length) throw truncated(path, length, bytes.length);
  return bytes;
}

async function wholeBody(path: string, response: Response): Promise<Blob> {
  const blob = await bodyOf(path, response);
  // Content-Length counts encoded bytes, so it says nothing about a compressed answer.
  const declared = response.headers.get('content-encoding')
    ? null
    : response.headers.get('content-length');
  if (declared !== null && Number(declared) > blob.size) {
    throw truncated(path, Number(declared), blob.size);
  }
  return blob;
}

async function bodyOf(path: string, response: Response): Promise<Blob> {
  try {
    return await response.blob();
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    const sentence = `${path} broke off while it was being read.`;
    throw new TransientFailure(new KinoraError('MODEL_FILE_TRUNCATED', sentence, { cause }));
  }
}
