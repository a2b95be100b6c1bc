import { randomBytes } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import busboy from 'busboy';
import { and, desc, eq, gt, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm';
import { KinoraError } from '../../../lib/contract';
import { ApiError } from '../../../lib/contract/v3';
import { imageFormats, sniffImage } from '../../../lib/video/sniff';
import { readSafetensorsHeader } from '../../../lib/weights/formats/safetensors';
import { blobFile } from '../../../lib/weights/formats/source';
import type { Caller } from '../../access/caller';
import type { Config } from '../../config';
import type { Store } from '../../store';
import { type JobRow, jobs, type UploadRow, uploads } from '../../store/schema';
import { type Source, tooLarge, withTemporaryFile } from '../blobs';
import {
  bodyOf,
  type FileHandler,
  type FilesContext,
  invalidField,
  lengthOf,
  typeOf,
} from '../requests';
import { serveBlob } from '../serving';

/** A row to insert; the database sets its time. */
type NewUpload = Omit<UploadRow, 'createdAt'>;
/** An upload whose bytes are there. */
export type StoredUpload = UploadRow & { readonly blobKey: string };

function newUpload(
  { owner, keyId }: Pick<Caller, 'owner' | 'keyId'>,
  file: Partial<NewUpload> & Pick<NewUpload, 'filename' | 'contentType'>,
  { KINORA_RETENTION_DAYS: days }: Pick<Config, 'KINORA_RETENTION_DAYS'>,
): NewUpload {
  const id = randomBytes(16).toString('hex');
  const expiresAt = new Date(Date.now() + days * 86_400_000);
  const empty = { jobId: null, bytes: 0, sha256: null, blobKey: null };
  return { id, owner, keyId, ...empty, expiresAt, ...file };
}

/** The key of the bytes of an upload. @param content tells those of several requests apart */
function keyOf(id: string, content = ''): string {
  return `uploads/${id.slice(0, 2)}/${id}${content}`;
}

/**
 * Stores received bytes. Their row comes first: by it the sweep finds what an interrupted request leaves.
 *
 * @param check looks at the received file, and returns its content type
 * @throws ApiError `TOO_LARGE`, `STORAGE_DOWN`; what the source or `check` throws
 */
export async function keepFile(
  { blobs, config, rows, temporary }: Omit<FilesContext, 'shares'>,
  owner: Pick<Caller, 'owner' | 'keyId'>,
  named: Parameters<typeof newUpload>[1],
  source: Source,
  maxBytes: number,
  check: (file: string, sha256: string) => Promise<string>,
): Promise<StoredUpload> {
  return await withTemporaryFile(temporary, source, maxBytes, async (file, { bytes, sha256 }) => {
    const contentType = await check(file, sha256);
    const draft = newUpload(owner, { ...named, contentType, bytes, sha256 }, config);
    const blobKey = keyOf(draft.id);
    const row = await rows.insert({ ...draft, blobKey });
    await blobs.putFile(blobKey, file, contentType).catch(async (thrown: unknown) => {
      await rows.remove(row.id).catch(() => undefined);
      throw thrown;
    });
    return { ...row, blobKey };
  });
}

/** Removes a file: the bytes first, so that an interrupted removal is found again. */
export async function removeFile(
  { blobs, rows }: Pick<FilesContext, 'blobs' | 'rows'>,
  { id, blobKey }: Pick<UploadRow, 'id' | 'blobKey'>,
): Promise<void> {
  if (blobKey !== null) await blobs.remove(blobKey);
  await rows.remove(id);
}

/**
 * The upload of an owner that one of our own links names.
 *
 * @returns undefined for any other address; null where the upload is another's or gone, or the link has ended
 */
export async function linkedUpload(
  { links, rows }: Pick<FilesContext, 'links' | 'rows'>,
  text: string,
  owner: string,
): Promise<UploadRow | null | undefined> {
  const id = links.uploadOf(text);
  if (id === null) return links.isOwnUpload(text) ? null : undefined;
  const upload = await rows.get(id);
  return upload?.owner === owner ? upload : null;
}

/** The table of uploads. */
export function uploadRows({ db }: Pick<Store, 'db'>) {
  /** The newest complete upload of an owner with this name that has not expired. */
  async function newest(owner: string, filename: string, more?: SQL): Promise<StoredUpload | null> {
    const isThere = and(isNotNull(uploads.blobKey), gt(uploads.expiresAt, new Date()), more);
    const [row] = await db
      .select()
      .from(uploads)
      .where(and(eq(uploads.owner, owner), eq(uploads.filename, filename), isThere))
      .orderBy(desc(uploads.createdAt))
      .limit(1);
    return row ? { ...row, blobKey: row.blobKey ?? '' } : null;
  }
  return {
    async insert(upload: NewUpload): Promise<UploadRow> {
      const [row] = await db.insert(uploads).values(upload).returning();
      if (!row) throw new Error('The upload was not inserted.');
      return row;
    },
    async get(id: string): Promise<UploadRow | null> {
      const [row] = await db.select().from(uploads).where(eq(uploads.id, id));
      return row ?? null;
    },
    /** Records where the bytes are. @returns null when another request did so before */
    async stored(
      id: string,
      file: Pick<UploadRow, 'sha256' | 'blobKey' | 'contentType'>,
    ): Promise<UploadRow | null> {
      const [row] = await db
        .update(uploads)
        .set(file)
        .where(and(eq(uploads.id, id), isNull(uploads.blobKey)))
        .returning();
      return row ?? null;
    },
    newest,
    /** The newest complete file of an owner with this name and content, such as a video that a worker sent. */
    same: (owner: string, filename: string, sha256: string): Promise<StoredUpload | null> =>
      newest(owner, filename, eq(uploads.sha256, sha256)),
    /** The files of a job. */
    ofJob: (jobId: string): Promise<UploadRow[]> =>
      db.select().from(uploads).where(eq(uploads.jobId, jobId)),
    /** The video is a job's from now on, and the files of the job are kept as long as it is. */
    async give(blobKey: string, { id, outputExpiresAt }: JobRow): Promise<void> {
      const set = { jobId: id, expiresAt: outputExpiresAt ?? new Date() };
      const isOfJob = or(eq(uploads.blobKey, blobKey), eq(uploads.jobId, id));
      await db.update(uploads).set(set).where(isOfJob);
    },
    async remove(id: string): Promise<void> {
      await db.delete(uploads).where(eq(uploads.id, id));
    },
    /**
     * Whether a job of the owner needs an upload's bytes: as its video, or as an image or adapter until it has ended and
     * its video is gone.
     */
    async inUse({ id, owner, filename, blobKey }: StoredUpload): Promise<boolean> {
      // A video has the name of its job, and is nothing else: an owner may have very many jobs.
      const ofVideo = filename.endsWith('.mp4') ? eq(jobs.id, filename.slice(0, -4)) : undefined;
      const asImage = or(
        sql`${jobs.image}->>'key' = ${blobKey}`,
        sql`${jobs.lastImage}->>'key' = ${blobKey}`,
      );
      const asLora = sql`${jobs.loras} @> ${JSON.stringify([{ uploadId: id }])}::jsonb`;
      const unfinished = inArray(jobs.status, ['created', 'processing']);
      const hasVideo = gt(jobs.outputExpiresAt, new Date());
      const uses = or(
        and(hasVideo, or(eq(jobs.outputKey, blobKey), asImage)),
        and(unfinished, or(asImage, asLora)),
      );
      const [row] = await db
        .select({ id: jobs.id })
        .from(jobs)
        .where(and(eq(jobs.owner, owner), ofVideo, uses))
        .limit(1);
      return row !== undefined;
    },
  };
}

export type UploadRows = ReturnType<typeof uploadRows>;

/**
 * Makes the row of an upload that is announced. @returns where to send the bytes, and their address after that
 *
 * @throws ApiError `INVALID_PARAMETER`, `TOO_LARGE`, `STORAGE_DOWN`
 */
export async function createTicket(
  { config, links, rows, requireSpace }: FilesContext,
  caller: Caller,
  input: { filename: string; size: number; content_type?: string | undefined },
) {
  const filename = checkFilename(input.filename);
  const contentType = announcedType(filename, input.content_type);
  const maxBytes = maxBytesOf(contentType, config);
  if (input.size > maxBytes) throw tooLarge(maxBytes, 'size');
  await requireSpace();
  const file = { filename, contentType, bytes: input.size };
  const upload = await rows.insert(newUpload(caller, file, config));
  const [method, url] = ['PUT', links.uploadTarget(upload)];
  const headers = { 'Content-Type': contentType };
  return { download_url: links.uploadDownload(upload), upload: { method, url, headers } };
}

/**
 * `PUT /files/uploads/{id}`: the bytes of a ticket. The signed address is the permission. Length and type must
 * be those of the ticket, and the bytes must be of that type. The same bytes again are no error.
 */
export const putUpload: FileHandler = async ({ files }, { request, query, params }) => {
  const { id = '' } = params;
  const { blobs, links, rows, requireSpace, temporary } = files;
  const isOpen = links.isOpen('upload', id, '', query);
  const upload = isOpen ? await rows.get(id) : null;
  if (!upload) throw new ApiError('NOT_FOUND', 'This upload address is not valid, or has expired.');
  if (lengthOf(request) !== upload.bytes) {
    const sentence = `Content-Length must be ${upload.bytes}, as in the ticket.`;
    throw invalidField('Content-Length', sentence);
  }
  if (typeOf(request) !== upload.contentType) {
    const sentence = `Content-Type must be ${upload.contentType}, as in the ticket.`;
    throw invalidField('Content-Type', sentence);
  }
  await requireSpace();
  await withTemporaryFile(temporary, bodyOf(request), upload.bytes, async (file, { sha256 }) => {
    let first = upload;
    if (upload.blobKey === null) {
      const contentType = await checkFile(file, upload);
      // The key holds the hash of the bytes: a second request cannot replace the first one's.
      const blobKey = keyOf(id, `-${sha256.slice(0, 16)}`);
      await blobs.putFile(blobKey, file, contentType);
      // Another request may have stored its bytes meanwhile: then those stay.
      const stored = await rows.stored(id, { sha256, blobKey, contentType });
      first = stored ?? (await rows.get(id)) ?? upload;
      if (first.sha256 !== sha256) await blobs.remove(blobKey);
    }
    if (first.sha256 !== sha256) {
      throw new ApiError('CONFLICT', 'Other bytes were uploaded here before.');
    }
  });
  return {};
};

/**
 * The content type of received bytes. An image without an end gets one.
 *
 * @throws ApiError `INVALID_IMAGE`, `INVALID_PARAMETER`
 */
async function checkFile(
  file: string,
  { contentType, filename }: Pick<UploadRow, 'contentType' | 'filename'>,
): Promise<string> {
  if (contentType === loraType) return await checkLora(file, filename);
  const received = await readFile(file);
  const { type, bytes } = await checkImage(received);
  if (bytes !== received) await writeFile(file, bytes);
  return type;
}

/** `GET /files/uploads/{id}/{filename}`: an upload, for holders of its signed address. */
export const getUpload: FileHandler = async ({ files }, { request, query, params }) => {
  const { id = '' } = params;
  const { blobs, links, rows } = files;
  const isOpen = links.isOpen('download', id, '', query);
  const upload = isOpen ? await rows.get(id) : null;
  if (!upload?.blobKey) throw new ApiError('NOT_FOUND');
  return await serveBlob(request, blobs, upload.blobKey, {
    type: upload.contentType,
    filename: upload.filename,
    tag: upload.sha256 ?? upload.id,
    readers: 'cross-origin',
    maxAge: 3600,
  });
};

/**
 * `POST …/media/upload/binary`: one file as multipart field `file`, with the API key. Version 0.0.15 of the
 * npm client `wavespeed` sends a `Blob` without a name ("blob"), so the part's content type counts too.
 */
export const postUpload: FileHandler = async ({ files }, { request, caller }) => {
  const { config, links, requireSpace } = files;
  if (typeOf(request) !== 'multipart/form-data') {
    throw new ApiError('UNSUPPORTED_MEDIA_TYPE', 'The upload must be a form.', {
      remedy: 'Send multipart/form-data with the file in the field `file`.',
    });
  }
  await requireSpace();
  const upload = await receiveForm(request, async (stream, info, formEnd) => {
    const filename = checkFilename(info.filename ?? 'upload');
    const contentType = announcedType(filename, info.mimeType);
    const named = { filename, contentType };
    const maxBytes = maxBytesOf(contentType, config);
    return await keepFile(files, caller, named, stream, maxBytes, async (file) => {
      await formEnd;
      return await checkFile(file, named);
    });
  });
  return {
    type: upload.contentType.startsWith('image/') ? 'image' : 'file',
    download_url: links.uploadDownload(upload),
    filename: upload.filename,
    size: upload.bytes,
  };
};

/**
 * Reads a form with one file, its field `file`.
 *
 * @param use reads the file to its end, and may then wait for the end of the form
 * @throws ApiError `INVALID_PARAMETER`; what `use` throws
 */
async function receiveForm<T>(
  request: Request,
  use: (stream: Readable, info: busboy.FileInfo, formEnd: Promise<void>) => Promise<T>,
): Promise<T> {
  const form = openForm(request);
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
  const formEnd = pipeline(bodyOf(request), form);
  try {
    await formEnd;
  } catch (thrown) {
    await Promise.allSettled(parts);
    if (thrown instanceof ApiError) throw thrown;
    throw new ApiError('INVALID_PARAMETER', 'The form cannot be read.', { cause: thrown });
  }
  const [part] = parts;
  if (!part) throw invalidField('file', 'The form needs one file in its field "file".');
  return await part;
}

function openForm({ headers }: Request): busboy.Busboy {
  try {
    return busboy({
      headers: Object.fromEntries(headers),
      defParamCharset: 'utf8',
      limits: { files: 1, fields: 20, fieldSize: 10_000, parts: 30, headerPairs: 100 },
    });
  } catch (cause) {
    throw new ApiError('INVALID_PARAMETER', 'The form has no boundary.', { cause });
  }
}

/** Content type of adapters: safetensors has no registered one. */
export const loraType = 'application/octet-stream';
const imageTypes = imageFormats.map((format) => `image/${format}`);

/**
 * The content type of a file by its announced type, and by its name.
 *
 * @throws ApiError `INVALID_PARAMETER` for what is neither image nor adapter
 */
function announcedType(filename: string, type = ''): string {
  const extension = /\.([a-z0-9]+)$/i.exec(filename)?.[1]?.toLowerCase() ?? '';
  if (extension === 'safetensors') return loraType;
  const mediaType = type.split(';')[0]?.trim().toLowerCase() ?? '';
  const byName = `image/${extension === 'jpg' ? 'jpeg' : extension}`;
  const known = [mediaType, byName].find((one) => imageTypes.includes(one));
  if (known !== undefined) return known;
  throw invalidField(
    'filename',
    'filename must be that of a PNG, JPEG, WebP, GIF, AVIF or BMP image or of a .safetensors file.',
  );
}

/** Largest upload of a content type, in bytes. */
function maxBytesOf(type: string, config: Config): number {
  return type === loraType ? config.KINORA_MAX_UPLOAD_BYTES : config.KINORA_MAX_IMAGE_BYTES;
}

/**
 * Checks and normalises a file name.
 *
 * @throws ApiError `INVALID_PARAMETER`
 */
function checkFilename(text: string): string {
  const name = text.normalize('NFC').trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  const unsafe = /[/\\\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/.test(name);
  if (unsafe || /\p{Surrogate}/u.test(name) || /^\.*$/.test(name) || name.length > 255) {
    throw invalidField('filename', 'filename must be one name of at most 255 characters, no path.');
  }
  return name;
}

/** The content type of an image, and its bytes. @throws ApiError `INVALID_IMAGE` with what is wrong, for the field */
export async function checkImage(sent: Buffer, field = 'image') {
  try {
    const { format, bytes } = await sniffImage(sent);
    return { type: `image/${format}`, bytes };
  } catch (thrown) {
    throw invalidField(field, sentenceOf(thrown), { code: 'INVALID_IMAGE', cause: thrown });
  }
}

/** @throws ApiError `INVALID_PARAMETER` with what is wrong */
async function checkLora(file: string, filename: string): Promise<string> {
  try {
    await readSafetensorsHeader(blobFile(filename, await openAsBlob(file)));
    return loraType;
  } catch (thrown) {
    throw invalidField('file', sentenceOf(thrown), { cause: thrown });
  }
}

/** The message of an expected failure; any other error is rethrown. */
export function sentenceOf(thrown: unknown): string {
  if (thrown instanceof KinoraError || thrown instanceof ApiError) return thrown.message;
  throw thrown;
}
