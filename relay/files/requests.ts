import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Guard } from '../guard/guard';
import type { CallOf } from '../http/handlers';
import type { Jobs } from '../jobs';
import type { Store } from '../store/store';
import type { Storage } from './blobs';
import type { Links } from './links';
import type { createSpace } from './retention';
import type { Shares } from './shares/rows';
import type { UploadRows } from './uploads';

/** Dependencies of {@link createFiles}. */
export interface FilesDependencies {
  readonly config: Config;
  readonly links: Links;
  readonly store: Pick<Store, 'db' | 'listen'>;
  readonly guard: Guard;
  readonly jobs: Jobs;
  readonly log: Logger;
}

/** Dependencies of the handlers of this folder. */
export interface FilesContext extends FilesDependencies, Storage {
  readonly requireSpace: ReturnType<typeof createSpace>;
  readonly rows: UploadRows;
  readonly shares: Shares;
}

/** A request of a file, whose caller was checked; the caller is null where anybody may ask. */
export interface FileCall extends Omit<CallOf<'uploadBinary'>, 'params' | 'query'> {
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** Answers for a file as the handlers of the API do. */
export type FileHandler = (relay: { files: FilesContext }, call: FileCall) => Promise<unknown>;

export function invalidField(
  field: string,
  message: string,
  options: ErrorOptions & { code?: ApiError['code']; remedy?: string } = {},
): ApiError {
  const { code = 'INVALID_PARAMETER', ...rest } = options;
  return new ApiError(code, message, { details: [{ field, message }], ...rest });
}

/**
 * The body of a request, piece by piece.
 *
 * @throws ApiError `INVALID_PARAMETER` when the caller breaks off
 */
export async function* bodyOf({ body }: Request): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of body ?? []) yield piece;
  } catch (cause) {
    throw new ApiError('INVALID_PARAMETER', 'The body ended too early.', { cause });
  }
}

/** The announced length of a body; null where there is none. */
export function lengthOf({ headers }: Request): number | null {
  const text = headers.get('content-length') ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** The type of a body without its parameters, in small letters. */
export function typeOf({ headers }: Request): string {
  return (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? '';
}
