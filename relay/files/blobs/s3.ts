import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { AwsClient } from 'aws4fetch';
import { Agent, errors, request } from 'undici';
import { ApiError } from '../../../lib/contract/v3';
import type { Config } from '../../config';
import { type BlobStore, checkKey, reportingErrors } from './index';

export type S3Settings = Pick<Config, 'S3_ENDPOINT' | 'S3_REGION' | 'S3_PREFIX'> & {
  readonly S3_BUCKET: string;
  readonly S3_ACCESS_KEY_ID: string;
  readonly S3_SECRET_ACCESS_KEY: string;
};

/** Longest wait for a connection, and for the answer to a readiness check, in milliseconds. */
const pingMs = 5000;
/** Longest silence of a bucket during a request, in milliseconds. */
const idleTimeoutMs = 30_000;

interface Order {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE';
  /** Key of the object; the bucket itself without one. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly file?: { readonly path: string; readonly bytes: number };
  readonly idleMs?: number;
}

/**
 * Blobs in a bucket, by the REST interface of S3 with addresses in path style and signature version 4.
 *
 * @param idleMs how long the bucket may be silent before it counts as down, in milliseconds
 */
export function s3Blobs(settings: S3Settings, idleMs = idleTimeoutMs): BlobStore {
  const signer = new AwsClient({
    service: 's3',
    region: settings.S3_REGION,
    accessKeyId: settings.S3_ACCESS_KEY_ID,
    secretAccessKey: settings.S3_SECRET_ACCESS_KEY,
  });
  const agent = new Agent({ connect: { timeout: pingMs } });
  const endpoint = settings.S3_ENDPOINT ?? `https://s3.${settings.S3_REGION}.amazonaws.com`;
  const bucket = `${endpoint.replace(/\/+$/, '')}/${settings.S3_BUCKET}`;

  /** Sends a request and returns the answer of 2xx, or null for an object that does not exist. */
  const send = async (order: Order) => {
    const { method, key, headers = {}, file } = order;
    const url = key === undefined ? bucket : `${bucket}/${settings.S3_PREFIX}${checkKey(key)}`;
    const signed = await signer.sign(url, { method, headers: { ...headers } });
    const body = file && file.bytes > 0 ? createReadStream(file.path) : null;
    try {
      const answer = await request(signed.url, {
        dispatcher: agent,
        method,
        headers: {
          ...Object.fromEntries(signed.headers),
          ...(file && { 'content-length': `${file.bytes}` }),
        },
        body,
        // Neither counts while the file is being sent, or while the reader of the answer pauses.
        headersTimeout: order.idleMs ?? idleMs,
        bodyTimeout: order.idleMs ?? idleMs,
      });
      if (answer.statusCode < 300) return answer;
      const text = await answer.body.text();
      if (answer.statusCode === 404 && key !== undefined && !text.includes('NoSuchBucket')) {
        return null;
      }
      throw new BucketError(answer.statusCode, text);
    } finally {
      // A refused request does not read the file to its end, and an open file keeps its disk space.
      body?.destroy();
    }
  };

  /** {@link send}, once more after a broken connection or a fault of the bucket; a timeout has taken long enough. */
  const sendTwice = (order: Order) =>
    send(order).catch((thrown: unknown) => {
      const isFinal = thrown instanceof BucketError ? thrown.status < 500 : isTimeout(thrown);
      if (isFinal || thrown instanceof TypeError) throw thrown;
      return send(order);
    });

  /** Sends a request whose answer has nothing to read. */
  const order = async (blobOrder: Order) => {
    const answer = await sendTwice(blobOrder);
    await answer?.body.dump();
    return answer;
  };

  return reportingErrors({
    folder: null,
    async putFile(key, file, type) {
      const { size: bytes } = await stat(file);
      const headers = { 'content-type': type };
      const answer = await order({ method: 'PUT', key, headers, file: { path: file, bytes } });
      if (!answer) throw new Error('The bucket has no such place.');
    },
    async read(key, range) {
      const headers: Record<string, string> = range
        ? { range: `bytes=${range.first}-${range.last}` }
        : {};
      const answer = await sendTwice({ method: 'GET', key, headers });
      if (!answer) throw new ApiError('NOT_FOUND');
      const body: Readable = answer.body;
      return { body, bytes: lengthOf(answer.headers) };
    },
    async stat(key) {
      const answer = await order({ method: 'HEAD', key });
      return answer && { bytes: lengthOf(answer.headers) };
    },
    async remove(key) {
      await order({ method: 'DELETE', key });
    },
    async ping() {
      await order({ method: 'HEAD', idleMs: pingMs });
    },
  });
}

/** An answer of the bucket that is no success. Its text names the fault, and nothing of ours. */
class BucketError extends Error {
  constructor(
    readonly status: number,
    text: string,
  ) {
    const code = /<Code>(\w+)<\/Code>/.exec(text)?.[1];
    super(`The bucket answered ${status}${code ? ` (${code})` : ''}.`);
  }
}

function lengthOf(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  const bytes = Number(headers['content-length'] ?? Number.NaN);
  if (Number.isNaN(bytes)) throw new Error('The bucket did not send the length of an object.');
  return bytes;
}

function isTimeout(thrown: unknown): boolean {
  return (
    thrown instanceof errors.HeadersTimeoutError ||
    thrown instanceof errors.BodyTimeoutError ||
    thrown instanceof errors.ConnectTimeoutError
  );
}
