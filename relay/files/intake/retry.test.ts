/** @module-tag full */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ApiPrediction } from '../../../lib/contract/v3';
import { type FilesTest, startFilesTest } from '../testing/node';

/** A host of images that comes and goes, as one that is restarted does. */
let web: Server | null = null;
let port = 0;
let answer: RequestListener = () => undefined;
let requests = 0;
async function open(): Promise<void> {
  web = createServer((request, response) => {
    requests += 1;
    answer(request, response);
  }).listen(port, '127.0.0.1');
  await new Promise((resolve) => web?.once('listening', resolve));
  port = (web.address() as AddressInfo).port;
}
async function close(): Promise<void> {
  web?.closeAllConnections();
  await new Promise((resolve) => (web ? web.close(resolve) : resolve(null)));
  web = null;
}

let folder = '';
let node: FilesTest;
let key = '';
const start = (more: Record<string, string> = {}) =>
  startFilesTest({ folder, settings: { PORT: '0', ...more } });
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-retry-'));
  await open();
  node = await start();
  key = node.apiKey;
}, 60_000);
afterEach(async () => {
  if (web === null) await open();
});
afterAll(async () => {
  await close();
  await node.stop();
  await rm(folder, { recursive: true, force: true });
});

const call = async (where: string, body?: unknown): Promise<ApiPrediction> =>
  (await node.api(where, body, key)).body.data;
const submit = (image: string) =>
  call('/api/v3/kinora/wan-2.2/i2v-720p-lora', { prompt: 'A test', image });
const result = (id: string) => call(`/api/v3/predictions/${id}/result`);
const poll = (look: () => Promise<unknown>) => expect.poll(look, { timeout: 20_000, interval: 30 });
const isReady = async (id: string) => (await node.relay.jobs.get(id))?.ready;

/** The next try is due, as after a pause of up to two minutes. */
const endPauses = () =>
  node.relay.store.db.execute(
    sql`update jobs set intake_retry_at = now() where intake_retry_at > now()`,
  );

/** A name, a part of the reason, and what the host does; null: it does not listen. */
type Failure = readonly [string, string, RequestListener | null];

describe('a passing failure of the host of an image', () => {
  const busy: Failure = [
    '503',
    'answered 503',
    (_, response) => void response.writeHead(503).end(),
  ];
  const others: readonly Failure[] = [
    ['429', 'answered 429', (_, response) => void response.writeHead(429).end()],
    ['a reset', 'broke off the connection', (request) => void request.socket.destroy()],
    ['a refused connection', 'refused the connection', null],
  ];
  const comesBack = async ([, reason, failure]: Failure) => {
    if (failure) answer = failure;
    else await close();
    const { id } = await submit(`http://127.0.0.1:${port}/a.png`);
    await poll(async () => (await result(id)).image_retry?.tries).toBeGreaterThan(0);
    const waiting = await result(id);
    expect(waiting).toMatchObject({ status: 'created', error: '' });
    expect(waiting.image_retry?.error).toMatch(`The image could not be loaded: 127.0.0.1`);
    expect(waiting.image_retry?.error).toContain(reason);
    expect(Date.parse(waiting.image_retry?.next_at ?? '')).toBeGreaterThan(
      Date.parse(waiting.created_at),
    );
    answer = (_request, response) => void response.end(node.image);
    if (web === null) await open();
    await endPauses();
    await poll(() => isReady(id)).toBe(true);
    expect(await result(id)).not.toHaveProperty('image_retry');
    expect((await node.relay.jobs.get(id))?.intakeAttempts).toBeLessThan(2);
  };
  it('leaves the job waiting, with the reason, until the host is back: 503', () => comesBack(busy));
  it.each(others)('the same: %s', { tags: ['full'] }, (...failure) => comesBack(failure));

  it('is tried again after a restart of the node, and fetched once', async () => {
    answer = (_request, response) => void response.writeHead(500).end();
    // A name that no resolver has: RFC 6761.
    const { id: nowhere } = await submit('http://there-is-none.invalid/a.png');
    const { id } = await submit(`http://127.0.0.1:${port}/b.png`);
    await poll(async () => (await result(id)).image_retry?.tries).toBeGreaterThan(0);
    await node.stop();
    requests = 0;
    answer = (_request, response) => void response.end(node.image);
    node = await start();
    await endPauses();
    await poll(() => isReady(id)).toBe(true);
    expect(requests).toBe(1);
    expect(await result(nowhere)).toMatchObject({
      status: 'created',
      image_retry: { error: expect.stringContaining('could not be found') },
    });
    await node.relay.jobs.cancel(nowhere, 'owner');
  });

  it('fails the job after about ten minutes', async () => {
    answer = (_request, response) => void response.writeHead(502).end();
    const { id } = await submit(`http://127.0.0.1:${port}/c.png`);
    const { db } = node.relay.store;
    // Each pause is waited for in the clock of the database: its end is set back.
    let waited = 0;
    for (let tries = 1; tries <= 11; tries += 1) {
      await poll(async () => (await node.relay.jobs.get(id))?.intakeFailures).toBe(tries);
      const { rows } = (await db.execute(
        sql`update jobs set intake_retry_at = now() where id = ${id} and intake_failures = ${tries}
          returning extract(epoch from (select intake_retry_at from jobs where id = ${id}) - now()) as pause`,
      )) as unknown as { rows: { pause: string }[] };
      waited += Number(rows[0]?.pause);
    }
    await poll(async () => (await result(id)).status).toBe('failed');
    expect(waited).toBeGreaterThan(9 * 60);
    expect(waited).toBeLessThan(11 * 60);
    expect(await result(id)).toMatchObject({
      code: 1402,
      error: expect.stringMatching(/answered 502\. It was tried 12 times\.$/),
    });
  });

  it('does not keep other images of the same owner waiting', async () => {
    answer = ({ url }, response) =>
      void (url === '/good.png' ? response.end(node.image) : response.writeHead(503).end());
    const ids: string[] = [];
    for (let count = 0; count < 20; count += 1) {
      ids.push((await submit(`http://127.0.0.1:${port}/d${count}.png`)).id);
    }
    await node.relay.store.db.execute(
      sql`update jobs set intake_retry_at = now() + interval '1 hour', intake_failures = 1
        where intake_failures = 0 and status = 'created' and not ready and intake_until is null`,
    );
    const { id } = await submit(`http://127.0.0.1:${port}/good.png`);
    await poll(() => isReady(id)).toBe(true);
    for (const one of ids) await node.relay.jobs.cancel(one, 'owner');
  });
});
