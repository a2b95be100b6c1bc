import { ApiError } from '../../../lib/contract/v3';

/** Names of blobs: made by us, lower-case parts without a dot in front, so that none leads elsewhere. */
const keyPattern = /^[a-z]+(\/[a-z0-9][a-z0-9._-]{0,150}){1,3}$/;

/** The key itself, checked. @throws TypeError for one that we cannot have made */
export function checkKey(key: string): string {
  if (!keyPattern.test(key)) throw new TypeError('Not a key of the blob store.');
  return key;
}

/**
 * Runs one operation on the storage. What it throws becomes `STORAGE_DOWN`; nothing is told of paths.
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

/** @returns whether a thrown value is the file system's "there is no such file" */
export function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'ENOENT';
}

/** The error for a body, or for what a field announces, beyond its limit. */
export function tooLarge(maxBytes: number, field = 'body'): ApiError {
  return new ApiError('TOO_LARGE', field === 'body' ? undefined : 'The file is too large.', {
    details: [{ field, message: `at most ${maxBytes} bytes` }],
  });
}
