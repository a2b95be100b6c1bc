import { ApiError } from '../../../lib/contract/v3';

/** Keys are made by this server: lower-case parts without a leading dot, so that none leaves the folder. */
const keyPattern = /^[a-z]+(\/[a-z0-9][a-z0-9._-]{0,150}){1,3}$/;

/**
 * The key of a file by what it belongs to: a job's own image (an upload that it uses keeps its own key), its video, the
 * picture that the studio sent with a video, an upload.
 *
 * @param content tells files of one id apart
 */
export function keyOf(
  kind: 'inputs' | 'outputs' | 'posters' | 'uploads',
  id: string,
  content = '',
): string {
  return `${kind}/${id.slice(0, 2)}/${id}${content}`;
}

/** Returns the key. @throws TypeError for one that this server cannot have made */
export function checkKey(key: string): string {
  if (!keyPattern.test(key)) throw new TypeError('Not a key of the blob store.');
  return key;
}

/**
 * Runs one operation on the storage. An error becomes `STORAGE_DOWN`, without its path.
 *
 * @throws ApiError
 */
export async function onStorage<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError('STORAGE_DOWN', undefined, { cause });
  }
}

/** Whether an error is the file system's "no such file". */
export function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
}

/** The error for a body, or an announced size, above its limit. */
export function tooLarge(maxBytes: number, field = 'body'): ApiError {
  const what = field === 'body' ? 'body' : 'file';
  const message = `The ${what} is larger than ${maxBytes.toLocaleString('en')} bytes.`;
  return new ApiError('TOO_LARGE', message, { details: [{ field, message }] });
}
