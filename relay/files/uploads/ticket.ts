import type { Config } from '../../config';
import type { Files } from '../../relay';
import { tooLarge } from '../blobs';
import type { Space } from '../space';
import { announcedKind, checkFilename, maxBytesOf } from './kinds';
import { newUpload, type UploadRows } from './rows';

/**
 * Answers "I want to upload this": the row of the upload, and the headers that its PUT must carry.
 *
 * @throws ApiError `INVALID_PARAMETER`, `TOO_LARGE`, `STORAGE_DOWN`
 */
export function createTicket(
  config: Config,
  rows: UploadRows,
  space: Pick<Space, 'require'>,
): Files['ticket'] {
  return async (caller, input) => {
    const filename = checkFilename(input.filename);
    const { kind, type } = announcedKind(filename, input.content_type);
    if (input.size > maxBytesOf(kind, config)) throw tooLarge(maxBytesOf(kind, config), 'size');
    await space.require();
    const upload = await rows.insert(
      newUpload(caller, { filename, contentType: type, bytes: input.size }, config),
    );
    return { upload, headers: { 'Content-Type': type } };
  };
}
