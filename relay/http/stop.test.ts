import { afterAll, beforeAll, expect, it } from 'vitest';
import { submission } from '../testing/api';
import { startTestRelay, type TestRelay } from '../testing/server';

/** A whole node with everything real but Next. */
let node: TestRelay;
beforeAll(async () => {
  node = await startTestRelay({ settings: { KINORA_STOP_SECONDS: '30' } });
}, 120_000);
afterAll(() => node.stop());

it('answers the API, lets events and a synchronous submission end when it stops, and closes all', async () => {
  const key = node.apiKey;
  const headers = { authorization: `Bearer ${key}` };
  const submit = (more: object) =>
    node.send('POST', '/api/v3/kinora/wan-2.2/i2v-720p-lora', {
      key,
      body: { ...submission, ...more },
    });
  const { status, json } = await submit({});
  expect(status).toBe(200);
  const { data } = json;
  expect(data.status).toBe('created');

  const events = await fetch(`${node.origin}/api/v3/predictions/${data.id}/events`, { headers });
  expect(events.headers.get('content-type')).toContain('text/event-stream');
  let told = '';
  const toldAll = (async () => {
    const text = events.body?.pipeThrough(new TextDecoderStream()) ?? [];
    for await (const part of text) told += part;
  })();
  const held = submit({ enable_sync_mode: true });
  const preflight = await fetch(`${node.origin}/api/v3/predictions`, { method: 'OPTIONS' });
  expect(preflight.status).toBe(204);
  // The stream runs, and the held submission is in the database, before the stop begins.
  const timeout = 30_000;
  await expect.poll(() => told, { timeout }).toContain('event: status');
  await expect.poll(async () => (await node.relay.jobs.depth()).waiting, { timeout }).toBe(2);

  await node.stop();
  await toldAll;
  expect((await held).status).toBe(200);
  await expect(fetch(`${node.origin}/healthz`)).rejects.toThrow();
  await expect(node.relay.store.ping()).rejects.toThrow();
}, 120_000);
