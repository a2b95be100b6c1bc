import { ApiError } from '../../lib/contract/v3';
import { causesOf, storageDown } from '../store/errors';

/**
 * The refusal for an error. A storage that does not answer is `STORAGE_DOWN`; a value that the database cannot
 * store (SQLSTATE class 22) came from the caller and is never a 5xx; any other error is `INTERNAL`.
 */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const down = storageDown(thrown);
  if (down !== null) return down;
  if (isDataException(thrown)) {
    return new ApiError('INVALID_PARAMETER', 'A value cannot be stored.', { cause: thrown });
  }
  return new ApiError('INTERNAL', undefined, { cause: thrown });
}

function isDataException(thrown: unknown): boolean {
  for (const error of causesOf(thrown)) {
    if ('code' in error && typeof error.code === 'string' && /^22\w{3}$/.test(error.code)) {
      return true;
    }
  }
  return false;
}
