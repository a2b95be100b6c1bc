import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import busboy from 'busboy';
import { ApiError } from '../../../lib/contract/v3';
import type { Config } from '../../config';
import type { NodeHandler } from '../../http/router';
import { temporaryFile, tooLarge, writeNewFile } from '../blobs';
import type { FilesContext } from '../context';
import { authenticate, invalidField, sendData, typeOf } from '../requests';
import { storeBytes } from './handlers';
import { announcedKind, checkFilename, maxBytesOf } from './kinds';
import { insertStored, newUpload } from './rows';

/**
 * `POST …/media/upload/binary`: one file as multipart field `file`, with the API key. Version 0.0.15 of the
 * npm client `wavespeed` sends a `Blob` without a name ("blob"), so the part's content type counts too.
 */
export function postUpload(context: FilesContext): NodeHandler {
  const { blobs, config, rows } = context;
  return async (request, response) => {
    const caller = await authenticate(context, request, response, 'api');
    if (typeOf(request) !== 'multipart/form-data') {
      throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The upload must be a form.', {
        remedy: 'Send multipart/form-data with the file in the field `file`.',
      });
    }
    await context.space.require();
    const file = temporaryFile(context.temporary);
    try {
      const received = await receiveFile(request, file, config);
      const draft = newUpload(
        caller,
        { filename: received.filename, contentType: received.type, bytes: received.bytes },
        config,
      );
      // Checked before the row is made, so that a refused file leaves nothing.
      const stored = await storeBytes(blobs, draft, file, received.sha256);
      const upload = await insertStored(rows, blobs, { ...draft, ...stored });
      sendData(response, {
        type: upload.contentType.startsWith('image/') ? 'image' : 'file',
        download_url: context.links.uploadDownload(upload),
        filename: upload.filename,
        size: upload.bytes,
      });
    } finally {
      await rm(file, { force: true });
    }
  };
}

/**
 * Streams the field `file` of a form to a file of this machine.
 *
 * @throws ApiError `INVALID_PARAMETER`, `TOO_LARGE`, `STORAGE_DOWN`
 */
async function receiveFile(request: IncomingMessage, file: string, config: Config) {
  const form = openForm(request);
  const received: ReturnType<typeof receivePart>[] = [];
  form.on('file', (field, stream: Readable, info) => {
    // A broken form also fails its parts, perhaps before they are read; the form's error is the one reported.
    stream.on('error', () => undefined);
    if (field !== 'file' || received.length > 0) {
      stream.resume();
      return;
    }
    const receiving = receivePart(stream, info, file, config);
    received.push(receiving);
    // A refused part ends the form; the promise itself is awaited below.
    receiving.catch((thrown: unknown) => {
      form.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
    });
  });
  const broken = () => form.destroy(new ApiError('INVALID_PARAMETER', 'The body ended too early.'));
  request.once('aborted', broken).once('error', broken);
  request.pipe(form);
  try {
    await finished(form);
  } catch (thrown) {
    request.unpipe(form);
    // The rest of the body is read and dropped, so that the caller can read the answer.
    request.resume();
    if (thrown instanceof ApiError) throw thrown;
    throw new ApiError('INVALID_PARAMETER', 'The form cannot be read.', { cause: thrown });
  } finally {
    request.off('aborted', broken).off('error', broken);
  }
  const [one] = await Promise.all(received);
  if (!one) throw invalidField('file', 'The form needs one file in its field "file".');
  return one;
}

/** One file of the form, whose content is not checked yet. */
async function receivePart(stream: Readable, info: busboy.FileInfo, file: string, config: Config) {
  const filename = checkFilename(info.filename ?? 'upload');
  const { kind, type } = announcedKind(filename, info.mimeType);
  const maxBytes = maxBytesOf(kind, config);
  const written = await writeNewFile(file, stream, maxBytes);
  if ('truncated' in stream && stream.truncated === true) throw tooLarge(maxBytes, 'file');
  return { filename, type, ...written };
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
