import { ApiError } from '../../../lib/contract/v3';
import type { NodeHandler } from '../../relay';
import { queryOf } from '../http';
import { serveBlob } from '../serving';
import type { UploadParts } from './receive';

/** `GET /files/uploads/{id}/{filename}`: an upload, for whoever has its signed address. */
export function getUpload({ blobs, links, rows }: UploadParts): NodeHandler {
  return async (request, response, { id = '' }) => {
    const end = links.verify('download', id, '', queryOf(request));
    const upload = end && end.getTime() > Date.now() ? await rows.get(id) : null;
    if (!upload?.blobKey) throw new ApiError('NOT_FOUND');
    await serveBlob(request, response, blobs, upload.blobKey, {
      type: upload.contentType,
      filename: upload.filename,
      tag: upload.sha256 ?? upload.id,
      readers: 'cross-origin',
      maxAge: 3600,
    });
  };
}
