/** @module-tag full */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from 'wavespeed';
import { listBodySchema } from '../../lib/contract/v3';
import { submission } from '../testing/api';
import { startTestRelay, type TestRelay } from '../testing/server';

/** The unmodified public client, without a worker; with one it is a test of the whole (`e2e/`). */
let server: TestRelay;
beforeAll(async () => {
  server = await startTestRelay();
}, 60_000);
afterAll(() => server?.stop(), 60_000);

test('a client reports a cancel, and its webhook keeps its query', async () => {
  const { relay, origin, apiKey } = server;
  const caller = await relay.keys.authenticate(`Bearer ${apiKey}`, 'api');
  const hook = `${origin}/hook?a=1&b=2`;
  const client = new Client(apiKey, { baseUrl: origin });
  const model = `wavespeed-ai/wan-2.1/i2v-720p-lora?webhook=${hook}`;
  const run = client.run(model, { ...submission }, { pollInterval: 0.05 });
  const cancelled = expect(run).rejects.toThrow('cancelled by user');
  const first = async () =>
    (await relay.jobs.list(caller.owner, listBodySchema.parse({ page_size: 1 }))).jobs[0];
  await expect.poll(first, { timeout: 20_000 }).toMatchObject({ webhookUrl: hook });
  await relay.jobs.cancel((await first())?.id ?? '', caller.owner);
  await cancelled;
});
