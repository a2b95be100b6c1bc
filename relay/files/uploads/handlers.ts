import { rm } from 'node:fs/promises';
import { ApiError } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { NodeHandler } from '../../http/router';
import type { UploadRow } from '../../store/schema';
import { keyOf, temporaryFile, tooLarge, writeNewFile } from '../blobs';
import type { BlobStore } from '../blobs/index';
import type { FilesContext } from '../context';
import { bodyOf, invalidField, lengthOf, queryOf, sendData, typeOf } from '../requests';
import { serveBlob } from '../serving';
import { announcedKind, checkContent, checkFilename, loraType, maxBytesOf } from './kinds';
import { newUpload } from './rows';

/**
 * Makes the row of an upload that is announced, and the headers that its PUT must carry.
 *
 * @throws ApiError `INVALID_PARAMETER`, `TOO_LARGE`, `STORAGE_DOWN`
 */
export function createTicket({ config, rows, space }: FilesContext) {
  return async (
    caller: Caller,
    input: { filename: string; size: number; content_type?: string | undefined },
  ): Promise<{ upload: UploadRow; headers: Readonly<Record<string, string>> }> => {
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

/**
 * `PUT /files/uploads/{id}`: the bytes of a ticket. The signed address is the permission. Length and type must
 * be those of the ticket, and the bytes must be of that type. The same bytes again are no error.
 */
export function putUpload(context: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    const isOpen = context.links.isOpen('upload', id, '', queryOf(request));
    const upload = isOpen ? await context.rows.get(id) : null;
    if (!upload)
      throw new ApiError('NOT_FOUND', 'This upload address is not valid, or has expired.');
    if (lengthOf(request) !== upload.bytes) {
      const sentence = `Content-Length must be ${upload.bytes}, as in the ticket.`;
      throw invalidField('Content-Length', sentence);
    }
    if (typeOf(request) !== upload.contentType) {
      const sentence = `Content-Type must be ${upload.contentType}, as in the ticket.`;
      throw invalidField('Content-Type', sentence);
    }
    await context.space.require();
    const file = temporaryFile(context.temporary);
    try {
      const { sha256 } = await writeNewFile(file, bodyOf(request), upload.bytes);
      if (upload.blobKey === null) await fill(context, upload, file, sha256);
      else if (upload.sha256 !== sha256) throw otherBytes();
    } finally {
      await rm(file, { force: true });
    }
    sendData(response, {});
  };
}

/**
 * Checks received bytes and moves the file into the blob store.
 *
 * @returns the columns of its row
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`
 */
export async function storeBytes(
  blobs: BlobStore,
  upload: Pick<UploadRow, 'id' | 'contentType' | 'filename'>,
  file: string,
  sha256: string,
) {
  const kind = upload.contentType === loraType ? 'lora' : 'image';
  const contentType = await checkContent(file, kind, upload.filename);
  // The key holds the hash of the bytes: a second request cannot replace the first one's.
  const blobKey = keyOf('uploads', upload.id, `-${sha256.slice(0, 16)}`);
  await blobs.putFile(blobKey, file, contentType);
  return { sha256, blobKey, contentType };
}

/** Stores the bytes of an upload that has none, unless another request has stored some meanwhile. */
async function fill(
  { blobs, rows }: FilesContext,
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

/** `GET /files/uploads/{id}/{filename}`: an upload, for holders of its signed address. */
export function getUpload({ blobs, links, rows }: FilesContext): NodeHandler {
  return async (request, response, { id = '' }) => {
    const isOpen = links.isOpen('download', id, '', queryOf(request));
    const upload = isOpen ? await rows.get(id) : null;
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
