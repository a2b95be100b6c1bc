import { KinoraError } from '../../contract';
import { blobFile, checkPath, folderFrom, type ModelFolder, truncated } from '../formats/source';
import { bodyLength } from './answers';
import { type Clock, systemClock } from './retry';

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

/**
 * A model folder on a web server. Its files are small, such as those of the models that come with the app: each is
 * fetched whole when it is opened. A server that is away for a moment is asked again.
 *
 * @param baseUrl the folder; a missing slash at its end is added
 */
export function httpFolder(baseUrl: URL, options: HttpFolderOptions = {}): ModelFolder {
  const send = options.fetch ?? ((input, init) => fetch(input, init));
  const { sleep } = options.clock ?? systemClock;
  const base = new URL(baseUrl);
  if (!base.pathname.endsWith('/')) base.pathname += '/';

  /** A whole file; with `HEAD` an empty one. @throws KinoraError, or TransientFailure */
  async function request(path: string, method: 'GET' | 'HEAD'): Promise<Blob> {
    const url = new URL(checkPath(path).split('/').map(encodeURIComponent).join('/'), base);
    const { signal = null } = options;
    const response = await send(url, { method, signal }).catch((cause: unknown) => {
      if (signal?.aborted) throw cause;
      const sentence = `${path} could not be fetched.`;
      throw new TransientFailure(new KinoraError('FILE_UNREADABLE', sentence, { cause }));
    });
    // No file of a model is a web page: servers of single-page apps answer unknown paths with one.
    const isPage = response.headers.get('content-type')?.startsWith('text/html') ?? false;
    if (response.status === 404 || response.status === 410 || (response.ok && isPage)) {
      await response.body?.cancel();
      throw new KinoraError('MODEL_FILE_MISSING', `${path} is missing from the model folder.`);
    }
    if (!response.ok) {
      await response.body?.cancel();
      const sentence = `${path} could not be fetched: the server answers ${response.status}.`;
      const failure = new KinoraError('FILE_UNREADABLE', sentence);
      throw response.status >= 500 ? new TransientFailure(failure) : failure;
    }
    const blob = await response.blob().catch((cause: unknown) => {
      if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
      const sentence = `${path} broke off while it was being read.`;
      throw new TransientFailure(new KinoraError('MODEL_FILE_TRUNCATED', sentence, { cause }));
    });
    const announced = (method === 'GET' && bodyLength(response.headers)) || 0;
    if (announced > blob.size) throw truncated(path, announced, blob.size);
    return blob;
  }

  async function fetchWhole(path: string, method: 'GET' | 'HEAD' = 'GET'): Promise<Blob> {
    for (let tried = 1; ; tried++) {
      try {
        return await request(path, method);
      } catch (thrown) {
        if (!(thrown instanceof TransientFailure)) throw thrown;
        if (tried === attempts) throw thrown.failure;
        await sleep(firstDelayMs * 2 ** (tried - 1), options.signal);
      }
    }
  }

  return folderFrom(
    async (path) => blobFile(path, await fetchWhole(path)),
    async (path) => {
      if (options.files) return options.files.includes(path);
      try {
        await fetchWhole(path, 'HEAD');
        return true;
      } catch (error) {
        if (error instanceof KinoraError && error.code === 'MODEL_FILE_MISSING') return false;
        throw error;
      }
    },
  );
}
