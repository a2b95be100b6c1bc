import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Guard } from '../../guard/guard';
import { serve, type TestServer } from '../../guard/testing/server';
import { testCaller, testJob } from '../../testing/jobs';
import { startTestRelay, type TestRelay } from '../../testing/server';
import { type BlobStore, partsFolder } from '../blobs';
import { createSpace } from '../retention';
import { type ApiBody, type FilesTest, startFilesTest } from '../testing/node';
import { uploadRows } from '../uploads';
import { createIntake, fetchImage } from './index';

let node: FilesTest;
/** A node whose background work does not run by itself. */
let quiet: TestRelay | null = null;
const quietNode = async () => {
  quiet ??= await startTestRelay({ background: false });
  return quiet;
};
let web: TestServer;
let origin = '';
/** What the intake of a node works with. */
const contextOf = ({ relay }: TestRelay) => {
  const { config, store, guard, jobs, log } = relay;
  const { blobs, links } = relay.files;
  const [rows, requireSpace] = [uploadRows(store), createSpace(config)];
  const temporary = partsFolder(config);
  return { config, store, guard, jobs, log, blobs, links, rows, requireSpace, temporary };
};
/** Requests by path. */
const asked = new Map<string, number>();

beforeAll(async () => {
  node = await startFilesTest();
  web = await serve((request, response) => {
    const path = request.url ?? '';
    asked.set(path, (asked.get(path) ?? 0) + 1);
    if (path === '/good.png') response.end(node.image);
    else if (path === '/moved.png') response.writeHead(302, { location: '/good.png' }).end();
    else if (path === '/loop.png') response.writeHead(302, { location: '/loop.png' }).end();
    else if (path === '/page.png') response.end('<html></html>');
    else if (path === '/cut.png') response.end(node.image.subarray(0, 500));
    else if (path.startsWith('/hang')) request.socket.on('error', () => undefined);
    else if (path === '/large.png') response.writeHead(200, { 'content-length': 30_000_000 }).end();
    else response.writeHead(404).end();
  });
  ({ origin } = web);
}, 60_000);
afterAll(async () => {
  await web.close();
  await node.stop();
  await quiet?.stop();
});

/** The key of the one file of a job. */
const onlyFile = async (jobId: string) => {
  const files = await node.relay.files.rows.ofJob(jobId);
  expect(files).toHaveLength(1);
  return files[0]?.blobKey;
};
const submit = (input: Record<string, unknown>) =>
  node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', { prompt: 'A test', ...input });
const dataUri = (bytes: Uint8Array, type = 'image/png') =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;

/** The job once its files are there, or it has ended. */
async function settled(answer: { body: ApiBody }) {
  const id = answer.body.data?.id ?? '';
  const find = () => node.relay.jobs.get(id);
  const options = { timeout: 20_000, interval: 30 };
  await expect
    .poll(async () => {
      const job = await find();
      return job?.ready === true || job?.status === 'failed';
    }, options)
    .toBe(true);
  const job = await find();
  if (!job) throw new Error(`There is no job: ${answer.body.message}`);
  return job;
}

async function upload(name: string, bytes: Uint8Array, key = node.apiKey): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(bytes)]), name);
  const headers = { authorization: `Bearer ${key}` };
  const init = { method: 'POST', headers, body: form };
  const answer = await node.get('/api/v3/media/upload/binary', init);
  const body = (await answer.json()) as ApiBody;
  return body.data?.download_url ?? body.message;
}

describe('an image', () => {
  it('as data URI is stored at once and returned as an address', async () => {
    const answer = await submit({ image: dataUri(node.image, 'image/webp') });
    const job = await settled(answer);
    expect(job.image).toEqual({
      key: await onlyFile(job.id),
      type: 'image/png', // by its bytes, whatever the URI says
      bytes: node.image.length,
    });
    const stored = await node.get(job.input.image);
    expect(Buffer.from(await stored.arrayBuffer()).equals(node.image)).toBe(true);
    // The returned address can be used again.
    expect((await settled(await submit({ image: job.input.image }))).image).toEqual(job.image);
  });

  it('as own upload is used as it is, for its owner only', async () => {
    const url = await upload('a.png', node.image);
    const job = await settled(await submit({ image: url }));
    expect(job.input.image).toBe(url);
    const other = await node.relay.keys.create({ kind: 'api', owner: 'other', name: 'other' });
    const foreign = await upload('b.png', node.image, other.key);
    const lora = await upload('a.safetensors', node.lora);
    for (const image of [foreign, lora, `${url}0`, url.replace(/\?.*/, '')]) {
      const { status, body } = await submit({ image });
      expect({ status, code: body.error_code }).toEqual({ status: 400, code: 'INVALID_IMAGE' });
    }
  });

  it.each([
    ['no image', Buffer.from('hello')],
    ['nothing', Buffer.alloc(0)],
    ['half an image', null],
  ])('as data URI of %s is refused at once', async (_, bytes) => {
    const { status, body } = await submit({
      image: dataUri(bytes ?? node.image.subarray(0, 500)),
    });
    expect(status).toBe(400);
    expect(['INVALID_IMAGE', 'INVALID_PARAMETER']).toContain(body.error_code);
    expect(body.details?.[0]?.field).toBe('image');
  });

  it('by address is fetched before a worker sees the job', async () => {
    for (const path of ['/good.png', '/moved.png']) {
      const job = await settled(await submit({ image: origin + path }));
      expect(job).toMatchObject({ status: 'created', ready: true });
      expect(job.input.image).toBe(origin + path);
      const { body } = await node.relay.files.blobs.read(job.image?.key ?? '');
      expect(Buffer.concat(await body.toArray()).equals(node.image)).toBe(true);
    }
  });

  it.each([
    ['/missing.png', /could not be loaded: 127\.0\.0\.1:\d+ answered 404\./, 1],
    ['/page.png', /cannot be used/, 1],
    ['/cut.png', /cannot be used: .* ends too early/, 1],
    ['/large.png', /could not be loaded/, 1],
    ['/loop.png', /redirects more than 3 times/, 4],
  ])('that cannot be loaded fails the job with a reason: %s', async (path, sentence, requests) => {
    const job = await settled(await submit({ image: origin + path }));
    expect(job).toMatchObject({ status: 'failed', code: 1402 });
    expect(job.error).toMatch(sentence);
    expect(asked.get(path)).toBe(requests);
    expect(await node.relay.files.rows.ofJob(job.id)).toEqual([]);
  });

  it('may end the video as well: each has its own file, and both are removed with the job', async () => {
    const image = dataUri(node.image);
    const job = await settled(await submit({ image, last_image: image }));
    const keys = (await node.relay.files.rows.ofJob(job.id)).map(({ blobKey }) => blobKey);
    expect([job.image?.key, job.lastImage?.key].sort()).toEqual(keys.sort());
    expect(job.lastImage).toEqual({
      ...job.image,
      key: expect.not.stringMatching(job.image?.key ?? ''),
    });
    expect(job.needs).toEqual(['last_image']);
    const address = String(job.input.last_image);
    expect(address).not.toBe(job.input.image);
    expect((await node.get(address)).status).toBe(200);
    await node.relay.jobs.cancel(job.id, job.owner);
    await node.relay.files.removeOf(job.id);
    for (const key of keys) expect(await node.relay.files.blobs.stat(key ?? '')).toBeNull();
    expect((await node.get(address)).status).toBe(404);

    const fetched = await settled(await submit({ image, last_image: `${origin}/good.png` }));
    expect(fetched.lastImage?.bytes).toBe(node.image.length);
    // Workers of earlier versions know the end only.
    const timed = await settled(await submit({ image, last_image: image, last_image_at: 2.5 }));
    expect(timed.needs).toEqual(['last_image', 'last_image_at']);
    expect(timed.input.last_image_at).toBe(2.5);
    const plain = await settled(await submit({ image }));
    expect(plain).toMatchObject({ lastImage: null, needs: [] });
    expect(plain.input).not.toHaveProperty('last_image');
  });

  it('at the end is named where it is the one that is wrong', async () => {
    const image = dataUri(node.image);
    const cut = dataUri(node.image.subarray(0, 500));
    const refused = await submit({ image, last_image: cut });
    expect(refused.body).toMatchObject({
      code: 400,
      error_code: 'INVALID_IMAGE',
      details: [{ field: 'last_image' }],
    });
    const looped = await submit({ image, last_image: image, loop: true });
    expect(looped.body).toMatchObject({
      error_code: 'INVALID_PARAMETER',
      message:
        'A loop ends in its start image, so it takes no end image. Leave out one of the two, or let the video show the end image at an earlier second.',
      details: [{ field: 'last_image' }],
    });
    const late = await submit({ image, last_image: image, last_image_at: 6 });
    expect(late.body).toMatchObject({
      error_code: 'INVALID_PARAMETER',
      message: expect.stringContaining('stands at second 6, and the video has 5 seconds.'),
      details: [{ field: 'last_image_at' }],
    });
    const alone = await submit({ image, last_image_at: 2 });
    expect(alone.body).toMatchObject({ details: [{ field: 'last_image_at' }] });
    const before = asked.get('/good.png') ?? 0;
    const last = { image: `${origin}/good.png`, last_image: `${origin}/cut.png` };
    const job = await settled(await submit(last));
    expect(job.error).toMatch(/^The end image cannot be used: .* ends too early/);
    expect(job.code).toBe(1402);
    // The start image is kept: another try would fetch the end image only.
    expect(job.image?.key).toBe(await onlyFile(job.id));
    expect(asked.get('/good.png')).toBe(before + 1);
  });

  it('of a host that does not answer is left for the next try', async () => {
    const context = contextOf(node);
    const stop = new AbortController();
    const url = `${origin}/hang/late.png`;
    const late = { jobId: 'late', field: 'image' } as const;
    const { guard } = context;
    const fetch: Guard['fetch'] = (address, request) =>
      guard.fetch(address, { ...request, answerMs: 50 });
    const impatient = { ...context, guard: { ...guard, fetch } };
    const sender = { owner: 'ada', keyId: 'key' };
    await expect(fetchImage(impatient, late, sender, url, stop.signal)).rejects.toMatchObject({
      message: expect.stringMatching(/did not answer in time/),
      isPassing: true,
    });
    // The stop of a node is another thing: the image is fetched again.
    const stopped = fetchImage(context, late, sender, url, stop.signal);
    stop.abort(new Error('stopping'));
    await expect(stopped).rejects.toThrow('stopping');
  });

  it('is not delayed by a host that does not answer', async () => {
    const other = await node.relay.keys.create({ kind: 'api', owner: 'hanger', name: 'hanger' });
    const hanging: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      const image = `${origin}/hang/${count}.png`;
      const asked = { prompt: 'A test', image };
      const { body } = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', asked, other.key);
      hanging.push(body.data.id);
    }
    expect((await settled(await submit({ image: `${origin}/good.png` }))).ready).toBe(true);
    for (const id of hanging) await node.relay.jobs.cancel(id, 'hanger');
  });

  it('that two nodes fetched is kept for the job', { tags: ['full'] }, async () => {
    const second = await quietNode();
    const { relay } = second;
    // A storage that hangs the first time, until the second is done.
    let isPutting = false;
    let goOn = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const blobs: BlobStore = {
      ...relay.files.blobs,
      async putFile(...order) {
        const isFirst = !isPutting;
        isPutting = true;
        if (isFirst) await held;
        return await relay.files.blobs.putFile(...order);
      },
    };
    const stop = new AbortController();
    const running = createIntake({ ...contextOf(second), blobs }).run(stop.signal);
    const image = `${origin}/good.png`;
    const order = testJob(testCaller('two'), { ready: false, image: null, input: { image } });
    const { id } = await relay.jobs.submit(order);
    await expect.poll(() => isPutting, { timeout: 20_000, interval: 20 }).toBe(true);
    await relay.store.db.execute(
      sql`update jobs set intake_until = now() - interval '1 second' where id = ${id}`,
    );
    const isReady = async () => (await relay.jobs.get(id))?.ready;
    await expect.poll(isReady, { timeout: 20_000, interval: 20 }).toBe(true);
    stop.abort();
    goOn();
    await running;
    const stored = { bytes: node.image.length };
    const job = await relay.jobs.get(id);
    expect(job?.ready).toBe(true);
    // What the slower one fetched is gone.
    expect((await relay.files.rows.ofJob(id)).map(({ blobKey }) => blobKey)).toEqual([
      job?.image?.key,
    ]);
    expect(await relay.files.blobs.stat(job?.image?.key ?? '')).toMatchObject(stored);
  });

  it('counts no attempt where the storage or the node failed', async () => {
    const { relay } = await quietNode();
    const { owner, keyId } = await relay.keys.authenticate(`Bearer ${quiet?.apiKey}`, 'api');
    const waiting = async (image: string) => {
      const caller = testCaller(owner, { keyId });
      const job = testJob(caller, { ready: false, image: null, input: { image } });
      return (await relay.jobs.submit(job)).id;
    };
    const stop = new AbortController();
    const running = relay.files.intake.run(stop.signal);
    // Where images are kept there is a file: nothing can be written.
    const inputs = path.join(relay.config.KINORA_DATA, 'files', 'uploads');
    await rm(inputs, { recursive: true, force: true });
    await mkdir(path.dirname(inputs), { recursive: true });
    await writeFile(inputs, '');
    const refused = await waiting(`${origin}/good.png`);
    const returned = async () => {
      const job = await relay.jobs.get(refused);
      return job?.intakeAttempts === 0 && job.intakeUntil !== null;
    };
    await expect.poll(returned, { timeout: 20_000, interval: 20 }).toBe(true);

    const cut = await waiting(`${origin}/hang/cut.png`);
    const taken = async () => (await relay.jobs.get(cut))?.intakeAttempts;
    await expect.poll(taken, { timeout: 20_000, interval: 20 }).toBe(1);
    stop.abort();
    await running;
    expect(await relay.jobs.get(cut)).toMatchObject({ intakeAttempts: 0, intakeUntil: null });
  });

  it('at an address that is refused is an error of the request', async () => {
    const { status, body } = await submit({ image: 'https://user:pw@example.com/a.png' });
    expect(status).toBe(400);
    expect(body.details?.[0]?.field).toBe('image');
  });
});

describe('an adapter', () => {
  const lorasOf = async (...paths: string[]) => {
    const loras = paths.map((path) => ({ path, scale: 1 }));
    return await submit({ image: dataUri(node.image), loras });
  };

  it('is resolved in each of its forms', async () => {
    const url = await upload('mine.safetensors', node.lora);
    const id = /uploads\/([0-9a-f]{32})/.exec(url)?.[1];
    const hub = await settled(
      await lorasOf(
        'owner/repo',
        'owner/repo/deep/x.safetensors',
        'https://huggingface.co/owner/repo/resolve/main/y.safetensors',
      ),
    );
    expect(hub.loras).toMatchObject([
      { from: 'hub', repository: 'owner/repo', file: null },
      { from: 'hub', repository: 'owner/repo', file: 'deep/x.safetensors' },
      { from: 'hub', repository: 'owner/repo', file: 'y.safetensors' },
    ]);
    const rest = await settled(await lorasOf('mine.safetensors', url, `${origin}/z.safetensors`));
    expect(rest.loras).toMatchObject([
      { path: 'mine.safetensors', from: 'upload', uploadId: id },
      { path: 'mine.safetensors', from: 'upload', uploadId: id },
      { from: 'link', url: `${origin}/z.safetensors` },
    ]);
  });

  it('of another revision is fetched as a link', async () => {
    const url = 'https://huggingface.co/owner/repo/blob/v2/y.safetensors';
    const { loras } = await settled(await lorasOf(url));
    expect(loras).toMatchObject([{ path: url, from: 'link', url: url.replace('blob', 'resolve') }]);
  });

  it('by the name of an upload is the newest one', async () => {
    await upload('twice.safetensors', node.lora);
    const newest = await upload('twice.safetensors', node.lora);
    const { loras } = await settled(await lorasOf('twice.safetensors'));
    expect(newest).toContain(loras[0]?.from === 'upload' ? loras[0].uploadId : 'none');
  });

  it('by the name of no upload fails the task with a sentence', async () => {
    const job = await settled(await lorasOf('never.safetensors'));
    expect(job).toMatchObject({ status: 'failed', code: 1402 });
    expect(job.error).toContain('never.safetensors');
  });

  it.each([
    'x',
    'owner/repo/x.bin',
    '../a/b',
    'ftp://x/y.safetensors',
    'https://a:b@c.de/x.safetensors',
  ])('that cannot be read is refused: %s', async (path) => {
    const { status, body } = await lorasOf('owner/repo', path);
    expect({ status, field: body.details?.[0]?.field }).toEqual({
      status: 400,
      field: 'loras.1.path',
    });
  });
});
