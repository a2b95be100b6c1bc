/** @module-tag full */
import { createHash } from 'node:crypto';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Completion } from '../../../lib/contract/v3';
import { type JobRow, jobs, uploads } from '../../store/schema';
import { clearSafety } from '../../testing/jobs';
import { makeVideo } from '../../testing/video';
import { type FilesTest, startFilesTest } from '../testing/node';
import { startBucket, type TestBucket } from '../testing/s3';
import { findVideo, takeVideo } from './video';

const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const nodes = new Map<string, FilesTest>();
let bucket: TestBucket | undefined;

beforeAll(async () => {
  bucket = await startBucket();
  const started = [startFilesTest(), startFilesTest({ settings: bucket.settings })] as const;
  nodes.set('disk', await started[0]);
  nodes.set('s3', await started[1]);
}, 60_000);
afterAll(async () => {
  for (const node of nodes.values()) await node.stop();
  await bucket?.stop();
});

describe.each(['disk', 's3'])('a video on %s', (kind) => {
  let node: FilesTest;
  let count = 0;
  beforeAll(() => {
    const started = nodes.get(kind);
    if (!started) throw new Error('The node did not start.');
    node = started;
  });

  type Job = JobRow & { leaseToken: string };
  /** Videos differ, so that no test meets the bytes of another. */
  const newVideo = () => {
    count += 1;
    return makeVideo({ title: `${kind} ${count}` });
  };
  const addressOf = (job: Job, sha256: string) =>
    `/api/worker/jobs/${job.id}/output?lease_token=${job.leaseToken}&sha256=${sha256}`;
  const put = async (job: Job, bytes: Uint8Array<ArrayBuffer>, options: Put = {}) => {
    const answer = await node.get(addressOf(job, options.sha256 ?? hash(bytes)), {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${options.token ?? node.workerToken}`,
        'content-type': 'video/mp4',
      },
      body: bytes,
    });
    return { status: answer.status, headers: answer.headers, body: await answer.json() };
  };
  const takeOutput = ({ id, owner, input }: Job, { sha256, bytes }: Completion) =>
    takeVideo(node.relay.files, { jobId: id, owner, sha256 }, input, bytes);
  const stored = async ({ id, owner }: Job, bytes: Uint8Array) => {
    const name = { jobId: id, owner, sha256: hash(bytes) };
    const upload = await findVideo(node.relay.files, name);
    return upload && (await node.relay.files.blobs.stat(upload.blobKey));
  };
  /** Lets the video of a job expire, as an upload. */
  const expire = async (job: Job) => {
    const expiresAt = new Date(Date.now() - 1000);
    const { db } = node.relay.store;
    await db
      .update(uploads)
      .set({ expiresAt })
      .where(eq(uploads.filename, `${job.id}.mp4`));
    await node.relay.files.sweep();
  };
  /** Lets the time of a completed job's video be over. */
  const expireAll = async (row: JobRow) => {
    const expiresAt = new Date(Date.now() - 1000);
    const { db } = node.relay.store;
    await db.update(jobs).set({ outputExpiresAt: expiresAt }).where(eq(jobs.id, row.id));
    await db.update(uploads).set({ expiresAt }).where(eq(uploads.jobId, row.id));
    await node.relay.files.sweep();
  };
  const completion = (job: Job, bytes: Uint8Array): Completion => ({
    lease_token: job.leaseToken,
    sha256: hash(bytes),
    bytes: bytes.length,
    seed: 1,
    inference_ms: 10,
    model: 'mini',
    precision: 'f32',
    encoder: 'test',
    safety: clearSafety,
    prompt_optimization: null,
  });
  /** A job with its video, as the API tells its address. */
  const completed = async () => {
    const [job, bytes] = [await node.claim(), await newVideo()];
    expect((await put(job, bytes)).status).toBe(200);
    const { key } = await takeOutput(job, completion(job, bytes));
    const { lease_token, ...result } = completion(job, bytes);
    const row = await node.relay.jobs.complete(job.id, lease_token, { ...result, outputKey: key });
    await node.relay.files.rows.give(key, row);
    return { bytes, row, url: node.relay.files.links.output(row) ?? '' };
  };

  it('is accepted whole, and again without an error', async () => {
    const [job, bytes] = [await node.claim(), await newVideo()];
    expect(await stored(job, bytes)).toBeNull();
    for (const _ of [1, 2]) {
      expect((await put(job, bytes)).status).toBe(200);
    }
    expect(await stored(job, bytes)).toEqual({ bytes: bytes.length });
    const taken = await takeOutput(job, completion(job, bytes));
    expect(taken.bytes).toBe(bytes.length);
  });

  it('is accepted after a connection was cut, of which nothing stays', async () => {
    const [job, bytes] = [await node.claim(), await newVideo()];
    const sent = request(node.origin + addressOf(job, hash(bytes)), {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${node.workerToken}`,
        'content-length': bytes.length,
      },
    });
    sent.on('error', () => undefined);
    sent.write(bytes.subarray(0, 3000));
    const files = async () => (await readdir(path.join(node.config.KINORA_DATA, 'parts'))).length;
    await expect.poll(files, { timeout: 20_000 }).toBe(1);
    sent.destroy();
    await expect.poll(files, { timeout: 20_000 }).toBe(0);
    expect(await stored(job, bytes)).toBeNull();
    expect((await put(job, bytes)).status).toBe(200);
    await takeOutput(job, completion(job, bytes));
  });

  it('is refused with another hash, a wrong lease, token or size', async () => {
    const [job, bytes] = [await node.claim(), await newVideo()];
    const wrong = await put(job, bytes, { sha256: '0'.repeat(64) });
    expect(wrong.body.error_code).toBe('OUTPUT_REJECTED');
    expect(await stored(job, bytes)).toBeNull();
    const stale = await put({ ...job, leaseToken: 'stale' }, bytes);
    expect({ status: stale.status, code: stale.body.error_code }).toEqual({
      status: 409,
      code: 'LEASE_LOST',
    });
    const other = await node.relay.keys.create({ kind: 'worker', owner: 'x', name: 'other' });
    expect((await put(job, bytes, { token: other.key })).body.error_code).toBe('LEASE_LOST');
    expect((await put(job, bytes, { token: node.apiKey })).status).toBe(403);
    expect((await put(job, bytes, { sha256: 'x' })).status).toBe(400);
    const large = request(node.origin + addressOf(job, hash(bytes)), {
      method: 'PUT',
      headers: { authorization: `Bearer ${node.workerToken}`, 'content-length': 10 ** 12 },
    });
    const status = new Promise((resolve) => {
      large.on('response', (answer) => resolve(answer.statusCode)).on('error', () => undefined);
    });
    large.flushHeaders();
    expect(await status).toBe(413);
    large.destroy();
  });

  it('is refused at completion when it is missing or not the requested video', async () => {
    const job = await node.claim();
    const take = (bytes: Uint8Array, extra: Partial<Completion> = {}) =>
      takeOutput(job, { ...completion(job, bytes), ...extra });
    const good = await newVideo();
    await expect(take(good)).rejects.toMatchObject({ code: 'CONFLICT' });
    const small = await makeVideo({ width: 640, height: 360, title: kind });
    await put(job, small);
    await expect(take(small)).rejects.toMatchObject({ code: 'OUTPUT_REJECTED' });
    await expect(take(small)).rejects.toMatchObject({ code: 'CONFLICT' }); // it was not kept
    await put(job, good);
    await expect(take(good, { bytes: 5 })).rejects.toMatchObject({ code: 'OUTPUT_REJECTED' });
  });

  it('is served with length, type, ETag, ranges and headers of a sandbox', async () => {
    const { bytes, row, url } = await completed();
    const whole = await node.get(url);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-length': String(bytes.length),
      'content-type': 'video/mp4',
      'accept-ranges': 'bytes',
      etag: `"${hash(bytes)}"`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'content-disposition': `inline; filename*=UTF-8''${row.id}.mp4`,
    });
    expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);

    const head = await node.get(url, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(bytes.length));
    const etag = whole.headers.get('etag') ?? '';
    // Without a cache-control of its own, fetch would ask for a fresh answer.
    const known = { 'if-none-match': etag, 'cache-control': 'max-age=0' };
    expect((await node.get(url, { headers: known })).status).toBe(304);
    const reload = { 'if-none-match': etag, 'cache-control': 'no-cache' };
    expect((await node.get(url, { headers: reload })).status).toBe(200);

    const range = async (text: string, extra: Record<string, string> = {}) => {
      const answer = await node.get(url, { headers: { range: text, ...extra } });
      const body = Buffer.from(await answer.arrayBuffer());
      return { status: answer.status, is: answer.headers.get('content-range'), body };
    };
    const size = bytes.length;
    expect(await range('bytes=10-19')).toEqual({
      status: 206,
      is: `bytes 10-19/${size}`,
      body: Buffer.from(bytes.subarray(10, 20)),
    });
    expect((await range('bytes=-5')).body).toEqual(Buffer.from(bytes.subarray(-5)));
    expect((await range(`bytes=${size - 3}-`)).is).toBe(`bytes ${size - 3}-${size - 1}/${size}`);
    expect((await range(`bytes=0-${size + 100}`)).is).toBe(`bytes 0-${size - 1}/${size}`);
    expect(await range(`bytes=${size}-`)).toMatchObject({ status: 416, is: `bytes */${size}` });
    expect((await range('bytes=0-1,5-6')).status).toBe(200);
    expect((await range('bytes=0-1', { 'if-range': '"other"' })).status).toBe(200);
    expect((await range('bytes=0-1', { 'if-range': etag })).status).toBe(206);
    // Both compare strongly (RFC 9110, 13.1.1 and 13.1.5).
    expect((await range('bytes=0-1', { 'if-range': `W/${etag}` })).status).toBe(200);
    expect((await range('bytes=0-1', { 'if-match': etag })).status).toBe(206);
    for (const wrong of ['"other"', `W/${etag}`]) {
      const refused = await range('bytes=0-1', { 'if-match': wrong });
      expect(refused).toMatchObject({ status: 412, is: null });
    }
  });

  it('is sent by its link from where it is stored, byte for byte the same frames', async () => {
    const { bytes, row } = await completed();
    const include = { prompt: true, settings: true, image: false };
    const { id } = await node.relay.files.shares.share(row, { include });
    const path = `/s/${id}/video.mp4`;
    const sent = Buffer.from(await (await node.get(path)).arrayBuffer());
    const frames = (file: Buffer) => file.subarray(file.indexOf('mdat') + 4);
    expect(frames(sent).equals(frames(Buffer.from(bytes)))).toBe(true);
    const seam = sent.indexOf('mdat');
    const part = await node.get(path, { headers: { range: `bytes=${seam}-${seam + 99}` } });
    const piece = Buffer.from(await part.arrayBuffer());
    expect(piece.equals(sent.subarray(seam, seam + 100))).toBe(true);
    await node.relay.files.blobs.remove(row.outputKey ?? '');
    expect((await node.get(path)).status).toBe(404);
  });

  it('is not found without its signature, or after a new nonce', async () => {
    const { row, url } = await completed();
    const bare = url.replace(/\?.*/, '');
    for (const wrong of [bare, `${url}0`, url.replace(row.id, '0'.repeat(32))]) {
      expect((await node.get(wrong)).status).toBe(404);
    }
    const { db } = node.relay.store;
    await db.update(jobs).set({ outputNonce: 'new' }).where(eq(jobs.id, row.id));
    expect((await node.get(url)).status).toBe(404);
  });

  it('is removed after its time, and the prediction says so', async () => {
    const { row, url } = await completed();
    await expireAll(row);
    const answer = await node.get(url);
    expect(answer.status).toBe(404);
    expect((await answer.json()).message).toContain('has expired');
    expect(await node.relay.files.blobs.stat(row.outputKey ?? '')).toBeNull();
    const { body } = await node.api(`/api/v3/predictions/${row.id}/result`);
    expect(body.data).toMatchObject({ status: 'completed', outputs: [] });
    expect(body.data?.error).not.toBe('');
  });

  it('is removed when its job does not end with it', async () => {
    const [job, bytes] = [await node.claim(), await newVideo()];
    await put(job, bytes);
    await node.relay.jobs.cancel(job.id, job.owner);
    await node.relay.files.sweep();
    expect(await stored(job, bytes)).toEqual({ bytes: bytes.length });
    await expire(job);
    expect(await stored(job, bytes)).toBeNull();
  });

  it('is kept when its job ended with it, although its time as an upload is over', async () => {
    const { row } = await completed();
    await expire({ ...row, leaseToken: row.leaseToken ?? '' });
    expect(await node.relay.files.blobs.stat(row.outputKey ?? '')).not.toBeNull();
  });

  it('keeps the image of its job for as long as it is there itself', async () => {
    const { row } = await completed();
    const keys = [row.outputKey ?? '', row.image?.key ?? ''];
    const { db } = node.relay.store;
    const expiresAt = new Date(Date.now() - 1000);
    await db.update(uploads).set({ expiresAt }).where(eq(uploads.jobId, row.id));
    await node.relay.files.sweep();
    for (const key of keys) expect(await node.relay.files.blobs.stat(key)).not.toBeNull();
    await expireAll(row);
    for (const key of keys) expect(await node.relay.files.blobs.stat(key)).toBeNull();
    expect(await node.relay.files.rows.ofJob(row.id)).toEqual([]);
  });

  it('leaves no temporary file for longer than the limit of an attempt', async () => {
    const file = path.join(node.config.KINORA_DATA, 'parts', 'tmp-left');
    await writeFile(file, 'of a process that was killed');
    const left = async () => (await readdir(path.dirname(file))).includes('tmp-left');
    await node.relay.files.sweep();
    expect(await left()).toBe(true);
    const long = new Date(Date.now() - (node.config.KINORA_ATTEMPT_SECONDS + 60) * 1000);
    await utimes(file, long, long);
    await node.relay.files.sweep();
    expect(await left()).toBe(false);
  });

  it('is removed with its job, and so is the image', async () => {
    const { row } = await completed();
    const keys = [row.outputKey ?? '', row.image?.key ?? ''];
    for (const key of keys) expect(await node.relay.files.blobs.stat(key)).not.toBeNull();
    await node.relay.jobs.remove([row.id], row.owner);
    await node.relay.files.removeOf(row.id);
    for (const key of keys) expect(await node.relay.files.blobs.stat(key)).toBeNull();
  });
});

interface Put {
  readonly sha256?: string;
  readonly token?: string;
}
