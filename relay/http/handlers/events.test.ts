/** @module-tag full */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWatches, maxOpen } from '../../jobs/watches';
import { startTestRelay, type TestRelay } from '../../testing/server';
import { answer } from '../answer';
import { streamOf } from './events';
import { waitForEnd } from './predictions';

let node: TestRelay;
beforeAll(async () => {
  // Nothing goes on in the background: images are never fetched, and predictions wait.
  node = await startTestRelay({ background: false });
}, 60_000);
afterAll(() => node?.stop());

/** A key of its own owner, with a prediction that waits for ever. */
async function waiting(owner: string) {
  const { key, record } = await node.relay.keys.create({ kind: 'api', owner, name: 'test' });
  const headers = { authorization: `Bearer ${key}` };
  const body = { image: 'http://127.0.0.1:1/a.png', prompt: 'A test' };
  const { data } = (await node.send('POST', '/api/v3/kinora/wan-2.2/i2v-720p-lora', { key, body }))
    .json;
  const open = (signal?: AbortSignal) =>
    fetch(`${node.origin}/api/v3/predictions/${data.id}/events`, {
      headers,
      ...(signal && { signal }),
    });
  return { id: data.id, keyId: record.id, headers, open };
}

describe('streams of events', () => {
  test('a key may have 50 streams open; another may be opened when one is closed', async () => {
    const { open } = await waiting('ada');
    const client = new AbortController();
    const streams = await Promise.all(Array.from({ length: maxOpen }, () => open(client.signal)));
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    const refused = await open();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refused.json()).toMatchObject({ error_code: 'RATE_LIMITED' });
    // Another key is not concerned.
    const other = await (await waiting('bob')).open(client.signal);
    expect(other.status).toBe(200);

    client.abort();
    const again = async () => {
      const answer = await open();
      await answer.body?.cancel();
      return answer.status;
    };
    await expect.poll(again, { timeout: 20_000 }).toBe(200);
  });

  test('a client that disconnects while its job is read is not counted', async () => {
    const { id, open, headers } = await waiting('gus');
    for (let count = 0; count < maxOpen; count += 1) {
      const gone = new AbortController();
      const url = `${node.origin}/api/v3/predictions/${id}/events`;
      const answering = answer(node.relay, new Request(url, { headers, signal: gone.signal }));
      gone.abort();
      // Next neither reads nor cancels the body where the client has disconnected.
      expect((await answering).status).toBe(200);
    }
    const { status, body } = await open();
    await body?.cancel();
    expect(status).toBe(200);
  });

  test('a stream that is not read ends after a while; one that is read continues', async () => {
    const started = () => {
      const over = new AbortController();
      const chunks = (async function* () {
        yield 'one';
        yield 'two';
      })();
      return { over, body: streamOf(chunks, over, 20) };
    };
    const [read, unread] = [started(), started()];
    const reader = read.body.getReader();
    await reader.read();
    await expect
      .poll(() => unread.over.signal.aborted, { timeout: 20_000, interval: 10 })
      .toBe(true);
    expect(read.over.signal.aborted).toBe(false);
    while (!(await reader.read()).done);
    expect(read.over.signal.aborted).toBe(true);
  });

  test('a wait that cannot begin is not counted', async () => {
    const { id, keyId } = await waiting('hal');
    const job = await node.relay.jobs.get(id);
    if (job === null) throw new Error('There is no job.');
    const jobs = { get: () => Promise.reject(new Error('down')) };
    const { store, stopping } = node.relay;
    const watches = createWatches({ store, jobs, stopping });
    const deaf = { ...node.relay, watches };
    const { signal } = new AbortController();
    for (let count = 0; count < maxOpen; count += 1) {
      await expect(waitForEnd(deaf, job, 1, signal)).rejects.toThrow('down');
    }
    expect(watches.open(keyId)).not.toBeNull();
  });

  test('a stream ends when its key is revoked', async () => {
    const { id, keyId, open } = await waiting('rita');
    const text = (await open()).text();
    await node.relay.keys.revoke(keyId);
    await node.relay.jobs.cancel(id, 'rita');
    expect(await text).not.toContain('cancelled');
  });
});
