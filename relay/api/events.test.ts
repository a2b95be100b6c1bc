import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestRelay, type TestRelay } from '../testing/server';
import { maxHeld } from './held';

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
  const answer = await fetch(`${node.origin}/api/v3/kinora/wan-2.2/i2v-720p-lora`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ image: 'http://127.0.0.1:1/a.png', prompt: 'A test' }),
  });
  const { data } = (await answer.json()) as { data: { id: string } };
  const open = (signal?: AbortSignal) =>
    fetch(`${node.origin}/api/v3/predictions/${data.id}/events`, {
      headers,
      ...(signal && { signal }),
    });
  return { id: data.id, keyId: record.id, open };
}

describe('streams of events', () => {
  test('a key may have so many open; one that is closed makes room', async () => {
    const { open } = await waiting('ada');
    const client = new AbortController();
    const streams = await Promise.all(Array.from({ length: maxHeld }, () => open(client.signal)));
    expect(streams.map(({ status }) => status)).toEqual(streams.map(() => 200));
    const refused = await open();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refused.json()).toMatchObject({ error_code: 'RATE_LIMITED' });
    // Another key is not concerned.
    const other = await (await waiting('bob')).open(client.signal);
    expect(other.status).toBe(200);

    client.abort();
    await expect
      .poll(async () => {
        const answer = await open();
        await answer.body?.cancel();
        return answer.status;
      })
      .toBe(200);
  });

  test('a stream ends with its key, and tells nothing more', async () => {
    const { id, keyId, open } = await waiting('rita');
    const text = (await open()).text();
    await node.relay.keys.revoke(keyId);
    await node.relay.jobs.cancel(id, 'rita');
    expect(await text).not.toContain('cancelled');
  });
});
