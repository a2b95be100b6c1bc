import { rm } from 'node:fs/promises';
import { ApiError } from '../../../lib/contract/v3';
import type { BlobStore, NodeHandler } from '../../relay';
import type { UploadRow } from '../../store/schema';
import { temporaryFile, writeNewFile } from '../blobs';
import { bodyOf, invalidField, lengthOf, queryOf, sendData, typeOf } from '../http';
import type { SignedLinks } from '../links';
import type { Space } from '../space';
import { checkContent, loraType } from './kinds';
import { type UploadRows, uploadKey } from './rows';

/** What this room's handlers of uploads work with. */
export interface UploadParts {
  readonly blobs: BlobStore;
  readonly links: SignedLinks;
  readonly rows: UploadRows;
  readonly space: Pick<Space, 'require'>;
  /** Folder for what is not yet whole. */
  readonly temporary: string;
}

/**
 * `PUT /files/uploads/{id}`: the bytes of a ticket. The address is the permission; length and type must be
 * those of the ticket, and what the bytes are is looked up in them. What does not fit is not kept.
 * The same bytes again are no error.
 */
export function putUpload(parts: UploadParts): NodeHandler {
  return async (request, response, { id = '' }) => {
    const end = parts.links.verify('upload', id, '', queryOf(request));
    const upload = end && end.getTime() > Date.now() ? await parts.rows.get(id) : null;
    if (!upload) throw new ApiError('NOT_FOUND', 'This upload address is not valid, or no longer.');
    if (lengthOf(request) !== upload.bytes) {
      const sentence = `Content-Length must be ${upload.bytes}, as in the ticket.`;
      throw invalidField('Content-Length', sentence);
    }
    if (typeOf(request) !== upload.contentType) {
      const sentence = `Content-Type must be ${upload.contentType}, as in the ticket.`;
      throw invalidField('Content-Type', sentence);
    }
    await parts.space.require();
    const file = temporaryFile(parts.temporary);
    try {
      const { sha256 } = await writeNewFile(file, bodyOf(request), upload.bytes);
      if (upload.blobKey === null) await fill(parts, upload, file, sha256);
      else if (upload.sha256 !== sha256) throw otherBytes();
    } finally {
      await rm(file, { force: true });
    }
    sendData(response, {});
  };
}

/** What a row says of bytes that are kept. */
export type StoredBytes = Pick<UploadRow, 'sha256' | 'blobKey' | 'contentType'>;

/**
 * Looks into received bytes and keeps them; the file is gone after it.
 *
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`
 */
export async function storeBytes(
  blobs: BlobStore,
  upload: Pick<UploadRow, 'id' | 'contentType' | 'filename'>,
  file: string,
  sha256: string,
): Promise<StoredBytes & { blobKey: string }> {
  const kind = upload.contentType === loraType ? 'lora' : 'image';
  const contentType = await checkContent(file, kind, upload.filename);
  // The name holds the bytes' own hash: whoever comes second cannot change what the first one put.
  const blobKey = `${uploadKey(upload.id)}-${sha256.slice(0, 16)}`;
  await blobs.putFile(blobKey, file, contentType);
  return { sha256, blobKey, contentType };
}

/** Gives an empty upload its bytes, unless another request did meanwhile. */
async function fill(
  { blobs, rows }: UploadParts,
  upload: UploadRow,
  file: string,
  sha256: string,
): Promise<void> {
  const stored = await storeBytes(blobs, upload, file, sha256);
  if (await rows.stored(upload.id, stored)) return;
  const first = await rows.get(upload.id);
  if (first?.sha256 === sha256) return;
  await blobs.remove(stored.blobKey);
  throw otherBytes();
}

function otherBytes(): ApiError {
  return new ApiError('CONFLICT', 'Other bytes were uploaded here before.');
}
