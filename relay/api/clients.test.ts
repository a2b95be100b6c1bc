import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Client } from 'wavespeed';
import { WaveSpeed } from 'wavespeed-0.0.15';
import { ProtocolWorker } from '../testing/protocol-worker';
import { startTestRelay, type TestRelay } from '../testing/server';
import { onePixel, submission } from './testing';

/**
 * The unmodified public clients against the server, with a worker that speaks the protocol. That a real
 * tab computes the same is a test of the whole (`e2e/`).
 */
const model = 'wavespeed-ai/wan-2.1/i2v-720p-lora-ultra-fast';
let server: TestRelay;
/** Of an owner without a worker: its tasks wait for ever. */
let lonelyKey = '';
let folder = '';
let picture = '';
const stop = new AbortController();
let working: Promise<void>;

beforeAll(async () => {
  server = await startTestRelay({ settings: { KINORA_SYNC_SECONDS: '5' } });
  const { key } = await server.relay.keys.create({ kind: 'api', owner: 'lonely', name: 'app' });
  lonelyKey = key;
  const worker = new ProtocolWorker({ origin: server.origin, token: server.workerToken });
  working = worker.run(stop.signal);
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-clients-'));
  picture = path.join(folder, 'still.png');
  await writeFile(picture, Buffer.from(onePixel.split(',')[1] ?? '', 'base64'));
}, 60_000);
afterAll(async () => {
  stop.abort();
  await working;
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

const client = (key = server.apiKey) => new Client(key, { baseUrl: server.origin });
const video = expect.stringMatching(/\/files\/video\/[0-9a-f]{32}\.mp4\?/);

describe.concurrent('wavespeed 0.3.2', () => {
  test('uploads, submits, polls; a webhook in the model string', async () => {
    const image = await client().upload(picture);
    const hook = `${model}?webhook=${server.origin}/hook?a=1&b=2`;
    const { outputs } = await client().run(hook, { ...submission, image }, { pollInterval: 0.1 });
    expect(outputs).toEqual([video]);
    const response = await fetch(String(outputs[0]));
    expect(response.headers.get('content-type')).toBe('video/mp4');
    await response.arrayBuffer();
    const id = /[0-9a-f]{32}/.exec(String(outputs[0]))?.[0] ?? '';
    expect((await server.relay.jobs.get(id))?.webhookUrl).toBe(`${server.origin}/hook?a=1&b=2`);
  });

  test('synchronous mode, in time and too late', async () => {
    const options = { enableSyncMode: true };
    expect(await client().run(model, { ...submission }, options)).toEqual({ outputs: [video] });
    const late = await client(lonelyKey).runNoThrow(model, { ...submission }, options);
    expect(late.outputs).toBeNull();
    expect(late.detail).toMatchObject({
      status: 'processing',
      error: expect.objectContaining({ name: 'WavespeedSyncTimeoutException' }),
    });
  });

  test('a failed task, a refused request, a wrong key', async () => {
    const failed = client(lonelyKey).run(model, { ...submission, seed: 8 }, { pollInterval: 0.1 });
    const cancelled = expect(failed).rejects.toThrow('cancelled by user');
    const waiting = { page: 1, pageSize: 10, status: 'created' } as const;
    // Not the synchronous one of the other test, which waits there too.
    const find = async () =>
      (await server.relay.jobs.list('lonely', waiting)).find(({ input }) => input.seed === 8);
    await expect.poll(find, { timeout: 10_000 }).toBeDefined();
    await server.relay.jobs.cancel((await find())?.id ?? '', 'lonely');
    await cancelled;
    await expect(client().run(model, { ...submission, duration: 99 })).rejects.toThrow(
      /HTTP 400: .*duration must be a whole number from 5 to 10/,
    );
    await expect(client('wrong').run(model, { ...submission })).rejects.toThrow('HTTP 401');
  });
});

describe.concurrent('wavespeed 0.0.15', () => {
  const old = (key = server.apiKey) =>
    new WaveSpeed(key, { baseUrl: `${server.origin}/api/v3/`, pollInterval: 0.1 });

  test('uploads a form, submits with a webhook, polls', async () => {
    const image = await old().upload(
      new Blob([Buffer.from(onePixel.slice(22), 'base64')], { type: 'image/png' }),
    );
    const webhook = `${server.origin}/hook`;
    const done = await old().run(model, { ...submission, image }, { webhook });
    expect(done).toMatchObject({ status: 'completed', outputs: [video], error: '' });
    expect(done.has_nsfw_contents).toEqual([false]);
  });

  test('a refused request and a wrong key', async () => {
    await expect(old().create(model, { ...submission, prompt: '' })).rejects.toThrow(
      'Failed to create prediction: 400',
    );
    await expect(old('wrong').create(model, { ...submission })).rejects.toThrow('401');
  });
});

test('@wavespeed/mcp: catalogue, schema, price, balance, run with a local file', async () => {
  const entry = createRequire(import.meta.url).resolve('@wavespeed/mcp');
  const env = {
    ...process.env,
    HOME: folder,
    WAVESPEED_API_KEY: server.apiKey,
    WAVESPEED_BASE_URL: server.origin,
  };
  const child = spawn(process.execPath, [entry], { env, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  try {
    const waiting = new Map<number, (message: { result?: ToolResult }) => void>();
    createInterface({ input: child.stdout }).on('line', (line) => {
      const message = JSON.parse(line) as { id: number; result?: ToolResult };
      waiting.get(message.id)?.(message);
    });
    let last = 0;
    const ask = (method: string, params: object) =>
      new Promise<ToolResult | undefined>((resolve) => {
        const id = ++last;
        waiting.set(id, ({ result }) => resolve(result));
        child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      });
    const call = async (name: string, args: object): Promise<unknown> => {
      const result = await ask('tools/call', { name, arguments: args });
      const text = result?.content[0]?.text ?? '';
      return result?.isError === true ? text : JSON.parse(text);
    };
    const clientInfo = { name: 'test', version: '1' };
    await ask('initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo });

    expect(await call('list_models', { query: 'ultra-fast' })).toMatchObject({
      total_matches: 2,
      models: expect.arrayContaining([expect.objectContaining({ model_id: model })]),
    });
    expect(await call('get_model_schema', { model })).toMatchObject({
      required: expect.arrayContaining(['image', 'prompt']),
      properties: { seed: { maximum: 9_999_999_999 } },
      property_order: expect.arrayContaining(['image']),
    });
    expect(await call('get_price', { model, input: {} })).toMatchObject({ price: 0 });
    expect(await call('get_balance', {})).toMatchObject({ balance: expect.any(Number) });
    const input = { ...submission, image: `@${picture}` };
    expect(await call('run_model', { model, input })).toMatchObject({
      status: 'completed',
      outputs: [video],
    });
    const refused = await call('run_model', { model, input: { prompt: 'a' } });
    expect(refused).toContain('[INVALID_PARAMETER]');
  } finally {
    child.kill();
    await ended;
  }
}, 60_000);

interface ToolResult {
  readonly content: readonly { readonly text: string }[];
  readonly isError?: boolean;
}
