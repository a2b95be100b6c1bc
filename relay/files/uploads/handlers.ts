import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import busboy from 'busboy';
import { ApiError } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import type { NodeHandler } from '../../http/router';
import type { UploadRow } from '../../store/schema';
import { keyOf, tooLarge, withTemporaryFile } from '../blobs';
import type { FilesContext } from '../context';
import {
  authenticate,
  bodyOf,
  invalidField,
  lengthOf,
  queryOf,
  sendData,
  typeOf,
} from '../requests';
import { serveBlob } from '../serving';
import { announcedKind, checkContent, checkFilename, loraType, maxBytesOf } from './kinds';
import { insertStored, newUpload } from './rows';

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
  const { blobs, links, rows, space, temporary } = context;
  return async (request, response, { id = '' }) => {
    const isOpen = links.isOpen('upload', id, '', queryOf(request));
    const upload = isOpen ? await rows.get(id) : null;
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
    await space.require();
    await withTemporaryFile(temporary, bodyOf(request), upload.bytes, async (file, { sha256 }) => {
      let first = upload;
      if (upload.blobKey === null) {
        const stored = await storeBytes(context, upload, file, sha256);
        // Another request may have stored its bytes meanwhile: then those stay.
        first = (await rows.stored(id, stored)) ?? (await rows.get(id)) ?? upload;
        if (first.sha256 !== sha256) await blobs.remove(stored.blobKey);
      }
      if (first.sha256 !== sha256) {
        throw new ApiError('CONFLICT', 'Other bytes were uploaded here before.');
      }
    });
    sendData(response, {});
  };
}

/**
 * Checks received bytes and moves the file into the blob store.
 *
 * @returns the columns of its row
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`
 */
async function storeBytes(
  { blobs }: FilesContext,
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

/**
 * `POST …/media/upload/binary`: one file as multipart field `file`, with the API key. Version 0.0.15 of the
 * npm client `wavespeed` sends a `Blob` without a name ("blob"), so the part's content type counts too.
 */
export function postUpload(context: FilesContext): NodeHandler {
  const { config, links, space, temporary } = context;
  return async (request, response) => {
    const caller = await authenticate(context, request, response);
    if (typeOf(request) !== 'multipart/form-data') {
      throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The upload must be a form.', {
        remedy: 'Send multipart/form-data with the file in the field `file`.',
      });
    }
    await space.require();
    const upload = await receiveForm(request, async (stream, info, formEnd) => {
      const filename = checkFilename(info.filename ?? 'upload');
      const { kind, type } = announcedKind(filename, info.mimeType);
      const maxBytes = maxBytesOf(kind, config);
      return await withTemporaryFile(temporary, stream, maxBytes, async (file, written) => {
        await formEnd;
        const { bytes, sha256 } = written;
        const draft = newUpload(caller, { filename, contentType: type, bytes }, config);
        // Checked before the row is made, so that a refused file leaves nothing.
        const stored = await storeBytes(context, draft, file, sha256);
        return await insertStored(context, { ...draft, ...stored });
      });
    });
    sendData(response, {
      type: upload.contentType.startsWith('image/') ? 'image' : 'file',
      download_url: links.uploadDownload(upload),
      filename: upload.filename,
      size: upload.bytes,
    });
  };
}

/**
 * Reads a form with one file, its field `file`.
 *
 * @param use reads the file to its end, and may then wait for the end of the form
 * @throws ApiError `INVALID_PARAMETER`; what `use` throws
 */
async function receiveForm<T>(
  request: IncomingMessage,
  use: (stream: Readable, info: busboy.FileInfo, formEnd: Promise<void>) => Promise<T>,
): Promise<T> {
  const form = openForm(request);
  const formEnd = finished(form);
  const parts: Promise<T>[] = [];
  form.on('file', (field, stream: Readable, info) => {
    // A broken form also fails its parts, perhaps before they are read; the form's error is the one reported.
    stream.on('error', () => undefined);
    if (field !== 'file') {
      stream.resume();
      return;
    }
    const part = use(stream, info, formEnd);
    parts.push(part);
    // A refused part ends the form; the promise itself is awaited below.
    part.catch((thrown: unknown) => {
      form.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
    });
  });
  const broken = () => form.destroy(new ApiError('INVALID_PARAMETER', 'The body ended too early.'));
  request.once('aborted', broken).once('error', broken);
  request.pipe(form);
  try {
    await formEnd;
  } catch (thrown) {
    request.unpipe(form);
    // The rest of the body is read and dropped, so that the caller can read the answer.
    request.resume();
    await Promise.allSettled(parts);
    if (thrown instanceof ApiError) throw thrown;
    throw new ApiError('INVALID_PARAMETER', 'The form cannot be read.', { cause: thrown });
  } finally {
    request.off('aborted', broken).off('error', broken);
  }
  const [part] = parts;
  if (!part) throw invalidField('file', 'The form needs one file in its field "file".');
  return await part;
}

function openForm(request: IncomingMessage): busboy.Busboy {
  try {
    return busboy({
      headers: request.headers,
      defParamCharset: 'utf8',
      limits: { files: 1, fields: 20, fieldSize: 10_000, parts: 30, headerPairs: 100 },
    });
  } catch (cause) {
    throw new ApiError('INVALID_PARAMETER', 'The form has no boundary.', { cause });
  }
}
