import { createReadStream, type ReadStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { ApiError } from '../../../lib/contract/v3';
import type { Config } from '../../config';
import { checkKey, onStorage } from './errors';
import type { BlobStore } from './index';
import { temporaryFile, writeNewFile } from './write';

/** The settings that name a bucket. */
export type S3Settings = Pick<
  Config,
  'S3_ENDPOINT' | 'S3_REGION' | 'S3_ACCESS_KEY_ID' | 'S3_SECRET_ACCESS_KEY' | 'S3_PREFIX'
> & { readonly S3_BUCKET: string };

/** Longest wait for the bucket to answer a readiness check, in milliseconds. */
const pingMs = 5000;
/** Longest silence of a bucket during a request, in milliseconds. */
const idleTimeoutMs = 30_000;
/** Factor for reads, which also stop while their own reader does, as with a paused video. */
const readIdleFactor = 10;

/**
 * Blobs in a bucket. A stream is written to a local file first: an object needs its length in advance, and a
 * stream that breaks must leave nothing.
 *
 * @param temporary folder for those files
 * @param idleMs how long the bucket may be silent before it counts as down, in milliseconds
 */
export function s3Blobs(
  settings: S3Settings,
  temporary: string,
  idleMs = idleTimeoutMs,
): BlobStore {
  const client = openClient(settings, idleMs);
  const reader = openClient(settings, idleMs * readIdleFactor);
  const timeout = () => ({ abortSignal: AbortSignal.timeout(idleMs) });
  const named = (key: string) => ({
    Bucket: settings.S3_BUCKET,
    Key: `${settings.S3_PREFIX}${checkKey(key)}`,
  });
  const putFile = async (key: string, file: string, type: string) => {
    const name = named(key);
    await onStorage(async () => {
      const { size } = await stat(file);
      const send = async (Body: ReadStream | Uint8Array, abortSignal?: AbortSignal) => {
        const object = { ...name, Body, ContentLength: size, ContentType: type };
        await client.send(new PutObjectCommand(object), { ...(abortSignal && { abortSignal }) });
      };
      // The client cannot repeat a stream, so the second attempt is made here.
      for (let tries = 1; ; tries += 1) {
        try {
          await (size === 0 ? send(new Uint8Array()) : withStream(file, send));
          break;
        } catch (thrown) {
          // A timeout has already taken long enough.
          if (tries === 2 || isTimeout(thrown)) throw thrown;
        }
      }
      await rm(file, { force: true });
    });
  };
  return {
    kind: 's3',
    async put(key, source, { type, maxBytes }) {
      checkKey(key);
      const file = temporaryFile(temporary);
      const written = await writeNewFile(file, source, maxBytes);
      try {
        await putFile(key, file, type);
      } finally {
        await rm(file, { force: true });
      }
      return written;
    },
    putFile,
    async read(key, range) {
      const Range = range && `bytes=${range.first}-${range.last}`;
      const command = new GetObjectCommand({ ...named(key), ...(Range && { Range }) });
      return await onStorage(async () => {
        const waiting = new AbortController();
        // Limits only the wait for the answer: its bytes may come as slowly as they are read.
        const late = setTimeout(() => waiting.abort(), idleMs);
        const answer = await reader
          .send(command, { abortSignal: waiting.signal })
          .catch((thrown: unknown) => {
            if (isMissing(thrown)) throw new ApiError('NOT_FOUND', undefined, { cause: thrown });
            throw thrown;
          })
          .finally(() => clearTimeout(late));
        if (!(answer.Body instanceof Readable)) throw new Error('The bucket sent no body.');
        return { body: answer.Body, bytes: lengthOf(answer) };
      });
    },
    async stat(key) {
      const command = new HeadObjectCommand(named(key));
      return await onStorage(async () => {
        try {
          return { bytes: lengthOf(await client.send(command, timeout())) };
        } catch (thrown) {
          if (isMissing(thrown)) return null;
          throw thrown;
        }
      });
    },
    async remove(key) {
      const command = new DeleteObjectCommand(named(key));
      await onStorage(() => client.send(command, timeout()));
    },
    async ping() {
      const command = new HeadBucketCommand({ Bucket: settings.S3_BUCKET });
      await onStorage(() => client.send(command, { abortSignal: AbortSignal.timeout(pingMs) }));
    },
  };
}

function lengthOf({ ContentLength: bytes }: { ContentLength?: number | undefined }): number {
  if (bytes === undefined) throw new Error('The bucket did not send the length of an object.');
  return bytes;
}

/**
 * Opens a file for `use` and closes it in any case: a refused request does not read it to its end, and an open
 * file keeps its disk space. A read error aborts the request.
 */
async function withStream(
  file: string,
  use: (stream: ReadStream, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const broken = new AbortController();
  const stream = createReadStream(file).on('error', (error) => broken.abort(error));
  try {
    await use(stream, broken.signal);
  } finally {
    stream.destroy();
  }
}

/** @param idleMs how long a connection may be idle; a whole request may take longer */
function openClient(settings: S3Settings, idleMs: number): S3Client {
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = settings;
  return new S3Client({
    region: settings.S3_REGION,
    forcePathStyle: true,
    // Other stores than Amazon's do not know the newer default checksums of its client.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Failures are thrown; they need not be printed as well.
    logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
    requestHandler: { connectionTimeout: pingMs, socketTimeout: idleMs },
    ...(settings.S3_ENDPOINT && { endpoint: settings.S3_ENDPOINT }),
    ...(accessKeyId && secretAccessKey && { credentials: { accessKeyId, secretAccessKey } }),
  });
}

const ignore = () => undefined;

/** Whether the client gave up waiting. A broken connection has the same name, but also a code. */
function isTimeout(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === 'TimeoutError' && !('code' in thrown);
}

function isMissing(thrown: unknown): boolean {
  if (!(thrown instanceof S3ServiceException)) return false;
  return thrown.name === 'NoSuchKey' || thrown.name === 'NotFound';
}
