import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'playwright/test';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { Client } from 'wavespeed';
import { WaveSpeed } from 'wavespeed-0.0.15';
import { quickStarts } from '../app/docs/testing/quick-starts';
import { type ApiServer, startServer } from '../lib/cli/dev/app-server';
import { exitCode, outputOf, startChild } from '../lib/cli/process';
import { quickChecker } from '../lib/contract';
import { refusedSentences } from '../lib/contract/testing/refusal-sentences';
import { inspectVideo } from '../lib/video/inspect';
import { type Receiver, startReceiver } from '../relay/testing/receiver';
import { fixtureVideo, full, picturePath } from './support/fixtures';
import { type McpServer, startMcp } from './support/mcp';
import { openServingTab, type ServingTab } from './support/serve-fixtures';

/**
 * The official clients of this API family, unmodified, against the running server and a real Chromium
 * tab that computes with the tiny model (v3-api.md §1). One step is enough: what travels is tested
 * here, not the picture.
 */
test.describe.configure({ mode: 'serial' });

const model = 'kinora/wan-2.2/i2v-720p-lora';
const alias = 'wavespeed-ai/wan-2.1/i2v-720p-lora-ultra-fast';
const [, refusedPrompt] = refusedSentences[0] ?? [];
const quick = { prompt: 'A lantern swings', num_inference_steps: 1, guidance_scale: 1, seed: 7 };

let server: ApiServer;
let tab: ServingTab;
let hooks: Receiver;
let mcp: McpServer;
let home = '';

test.beforeAll(async ({ browser }) => {
  home = await mkdtemp(path.join(tmpdir(), 'kinora-clients-'));
  await copyFile(picturePath, path.join(home, 'still.png'));
  hooks = await startReceiver();
  server = await startServer({ env: { KINORA_ALLOW_PRIVATE: '1' } });
  tab = await openServingTab(browser, server);
  mcp = await startMcp({ origin: server.origin, apiKey: server.apiKey, home });
});

test.afterAll(async () => {
  await mcp?.close();
  await tab?.close();
  await server?.stop();
  await hooks?.close();
  await rm(home, { recursive: true, force: true });
});

const client = () => new Client(server.apiKey, { baseUrl: server.origin });
const oldClient = (key = server.apiKey) =>
  new WaveSpeed(key, { baseUrl: `${server.origin}/api/v3/` });
const still = () => path.join(home, 'still.png');
/** What nothing is to be had from: the receiver answers a POST only with emptiness. */
const noImage = () => new URL('/nothing.png', hooks.url).href;

/** Downloads an output as anybody could, without a key, and looks into the file. */
async function expectVideo(outputs: readonly unknown[]): Promise<void> {
  expect(outputs).toHaveLength(1);
  const response = await fetch(String(outputs[0]));
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('video/mp4');
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(Number(response.headers.get('content-length'))).toBe(bytes.length);
  const facts = await inspectVideo(new Blob([bytes]));
  expect(facts).toMatchObject(fixtureVideo);
}

/** The videos of the bundled model are judged by the quick checker. */
const checked = {
  has_nsfw_contents: [false],
  safety: {
    status: 'clear',
    score: expect.any(Number),
    model: quickChecker.model,
    sha256: quickChecker.weights.sha256,
  },
};

/** A prediction as the server tells it, with the fields that no client knows. */
async function predictionOf(id: string): Promise<unknown> {
  const headers = { Authorization: `Bearer ${server.apiKey}` };
  const response = await fetch(`${server.origin}/api/v3/predictions/${id}/result`, { headers });
  return ((await response.json()) as { data: unknown }).data;
}

/** One of its own webhooks, when it has come. */
async function webhookOf(id: string): Promise<Receiver['received'][number]> {
  const find = () => hooks.received.find(({ body }) => body.includes(id));
  await expect.poll(() => find() !== undefined, { timeout: 60_000 }).toBe(true);
  const found = find();
  if (!found) throw new Error('The webhook went away.');
  return found;
}

async function secret(): Promise<string> {
  const headers = { Authorization: `Bearer ${server.apiKey}` };
  const response = await fetch(`${server.origin}/api/v3/webhook/secret`, { headers });
  return ((await response.json()) as { data: { secret: string } }).data.secret;
}

/** A red picture, as the address of its bytes. */
function redPicture(): Promise<string> {
  return tab.page.evaluate(() => {
    const canvas = document.createElement('canvas');
    const context = canvas.getContext('2d');
    if (!context) throw new Error('There is no canvas.');
    context.fillStyle = 'red';
    context.fillRect(0, 0, canvas.width, canvas.height);
    return canvas.toDataURL();
  });
}

/** By how much red is over green and blue in frames of a video of eight a second, from 0 to 255. */
function redness(output: unknown, frames: readonly number[]): Promise<number[]> {
  return tab.page.evaluate(
    async ([src, indices]) => {
      const video = document.createElement('video');
      video.src = src;
      const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
      const found: number[] = [];
      for (const index of indices) {
        const sought = new Promise((resolve) =>
          video.addEventListener('seeked', resolve, { once: true }),
        );
        // After the seek its frame may not be there yet: what is drawn then is empty.
        const shown = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
        video.currentTime = (index + 0.5) / 8;
        await Promise.all([sought, shown]);
        context?.drawImage(video, 0, 0, 1, 1);
        const [red = 0, green = 0, blue = 0] = context?.getImageData(0, 0, 1, 1).data ?? [];
        found.push(red - Math.max(green, blue));
      }
      return found;
    },
    [String(output), frames] as const,
  );
}

test(
  'wavespeed 0.3.2: upload, submit, poll, download; the webhook in the model string',
  full,
  async () => {
    const image = await client().upload(still());
    expect(image).toMatch(new RegExp(`^${server.origin}/`));
    const { outputs, detail } = await client().runNoThrow(
      `${alias}?webhook=${hooks.url}`,
      { ...quick, image },
      { pollInterval: 0.5 },
    );
    expect(detail.error).toBeUndefined();
    expect(detail.status).toBe('completed');
    await expectVideo(outputs ?? []);

    const { headers, body } = await webhookOf(detail.taskId);
    expect(JSON.parse(body)).toMatchObject({
      id: detail.taskId,
      model: alias,
      outputs,
      status: 'completed',
      error: '',
      ...checked,
      input: { prompt: quick.prompt, num_inference_steps: 1 },
    });
    expect(await predictionOf(detail.taskId)).toMatchObject({ outputs, ...checked });
    const key = await secret();
    const flat = headers as Record<string, string>;
    expect(new SvixWebhook(key).verify(body, flat)).toMatchObject({ id: detail.taskId });
    const standard = {
      'webhook-id': flat['svix-id'] ?? '',
      'webhook-timestamp': flat['svix-timestamp'] ?? '',
      'webhook-signature': flat['svix-signature'] ?? '',
    };
    expect(new StandardWebhook(key).verify(body, standard)).toMatchObject({ id: detail.taskId });
    // The v3 way, with the very file that the documentation shows.
    const file = path.resolve('app/docs/snippets/verify-webhook.mjs');
    const { verifyWebhook } = (await import(file)) as {
      verifyWebhook(body: Buffer, headers: Record<string, string>, secret: string): boolean;
    };
    expect(verifyWebhook(Buffer.from(body), flat, key)).toBe(true);
    expect(verifyWebhook(Buffer.from(`${body} `), flat, key)).toBe(false);
  },
);

test('wavespeed 0.0.15: multipart upload, submit, poll, download', full, async () => {
  const bytes = await readFile(still());
  const image = await oldClient().upload(new Blob([bytes], { type: 'image/png' }), {
    filename: 'still.png',
  });
  const prediction = await oldClient().run(model, { ...quick, image });
  expect(prediction).toMatchObject({ status: 'completed', error: '', has_nsfw_contents: [false] });
  await expectVideo(prediction.outputs);
});

test(
  'wavespeed 0.3.2: sync mode answers with the video; without a language model the prompt is used as it is',
  full,
  async () => {
    const image = `data:image/png;base64,${(await readFile(still())).toString('base64')}`;
    const input = { ...quick, image, enable_prompt_optimizer: true, enable_safety_checker: false };
    const { outputs, detail } = await client().runNoThrow(model, input, { enableSyncMode: true });
    expect(detail.error).toBeUndefined();
    await expectVideo(outputs ?? []);
    expect(await predictionOf(detail.taskId)).toMatchObject({
      status: 'completed',
      has_nsfw_contents: [false],
      safety: { status: 'off', score: null, model: null },
      optimized_prompt: quick.prompt,
      prompt_optimization: { status: 'unavailable', model: null, sha256: null },
    });
  },
);

test(
  'every client sends an end image: the video shows it at its second, or ends in it',
  full,
  async () => {
    const image = await client().upload(still());
    const last_image = await redPicture();
    const between = { ...quick, image, last_image, last_image_at: 2.5 };
    const { outputs, detail } = await client().runNoThrow(model, between, { pollInterval: 0.5 });
    expect(detail.error).toBeUndefined();
    await expectVideo(outputs ?? []);
    // Eight frames a second, from 0 to 40.
    const [start, half, middle, end] = await redness(outputs?.[0], [0, 10, 20, 40]);
    expect(middle).toBeGreaterThan(200);
    for (const other of [start, half, end]) expect(other).toBeLessThan(100);
    expect(await predictionOf(detail.taskId)).toMatchObject({ input: { last_image_at: 2.5 } });

    const ends = await oldClient().run(model, { ...quick, image, last_image });
    expect(ends).toMatchObject({ status: 'completed', error: '' });
    const [before, last] = await redness(ends.outputs[0], [20, 40]);
    expect(before).toBeLessThan(100);
    expect(last).toBeGreaterThan(200);

    const run = await mcp.call('run_model', { model, input: between });
    expect(run).toMatchObject({ status: 'completed' });
    expect((await redness((run.outputs as unknown[])[0], [20]))[0]).toBeGreaterThan(200);

    const late = { ...between, last_image_at: 6 };
    await expect(client().run(model, late)).rejects.toThrow(/HTTP 400.*the video has 5 seconds/);
  },
);

test('@wavespeed/mcp: models, schema, price, balance, a run with a local file', full, async () => {
  const { models } = (await mcp.call('list_models', { refresh: true })) as {
    models: { model_id: string }[];
  };
  expect(models.map(({ model_id }) => model_id)).toContain(model);
  const schema = await mcp.call('get_model_schema', { model });
  expect((schema.required as string[]).sort()).toEqual(['image', 'prompt']);
  expect(schema.properties).toHaveProperty('num_inference_steps.maximum', 40);
  expect(await mcp.call('get_price', { model, input: quick })).toMatchObject({ price: 0 });
  expect((await mcp.call('get_balance')).balance).toBeGreaterThan(0);

  const run = await mcp.call('run_model', { model, input: { ...quick, image: '@./still.png' } });
  expect(run).toMatchObject({ status: 'completed', uploaded_files: 1 });
  await expectVideo(run.outputs as unknown[]);
  const again = await mcp.call('get_prediction', { id: run.id });
  expect(again).toMatchObject({ id: run.id, model, status: 'completed', outputs: run.outputs });
});

test('every client reports a failed task with its sentence', full, async () => {
  const input = { ...quick, image: noImage() };
  const { outputs, detail } = await client().runNoThrow(model, input, { pollInterval: 0.2 });
  expect(outputs).toBeNull();
  expect(detail).toMatchObject({ status: 'failed' });
  expect(detail.taskId).toMatch(/^[0-9a-f]{32}$/);
  expect(detail.error?.message).toMatch(/image/i);

  const failed = await oldClient().run(model, input);
  expect(failed).toMatchObject({ status: 'failed', outputs: [] });
  expect(failed.error).toMatch(/image/i);

  await expect(mcp.call('run_model', { model, input })).rejects.toThrow(/failed: .*image/i);
});

test('every client reports a parameter out of its range (400)', full, async () => {
  const input = { ...quick, num_inference_steps: 41, image: noImage() };
  const sentence = /num_inference_steps must be a whole number from 1 to 40/;
  await expect(client().run(model, input)).rejects.toThrow(/HTTP 400/);
  await expect(client().run(model, input)).rejects.toThrow(sentence);
  await expect(oldClient().create(model, input)).rejects.toThrow(sentence);
  await expect(mcp.call('run_model', { model, input })).rejects.toThrow(sentence);
  const refused = { ...quick, prompt: refusedPrompt, image: noImage() };
  await expect(client().run(model, refused)).rejects.toThrow(/HTTP 400.*PROMPT_REFUSED/);
  await expect(oldClient().create(model, refused)).rejects.toThrow(/names a child/);
  const hook = `${model}?webhook=nothing`;
  await expect(client().run(hook, { ...quick, image: noImage() })).rejects.toThrow(
    /INVALID_WEBHOOK/,
  );
});

test('every client reports a key that is not valid (401)', full, async () => {
  const input = { ...quick, image: noImage() };
  const unknown = new Client('kn_unknown', { baseUrl: server.origin });
  await expect(unknown.run(model, input)).rejects.toThrow(/HTTP 401.*UNAUTHORIZED/);
  await expect(unknown.upload(still())).rejects.toThrow(/HTTP 401/);
  await expect(oldClient('kn_unknown').create(model, input)).rejects.toThrow(/401.*UNAUTHORIZED/);
  const other = await startMcp({ origin: server.origin, apiKey: 'kn_unknown', home });
  await expect(other.call('get_balance')).rejects.toThrow(/\[UNAUTHORIZED\]/);
  await other.close();
});

test('sync mode without a worker times out, and the task goes on', full, async () => {
  const small = await startServer({ env: { KINORA_SYNC_SECONDS: '1' } });
  try {
    const waiting = new Client(small.apiKey, { baseUrl: small.origin });
    const image = `data:image/png;base64,${(await readFile(still())).toString('base64')}`;
    const input = { ...quick, image };
    const { outputs, detail } = await waiting.runNoThrow(model, input, { enableSyncMode: true });
    expect(outputs).toBeNull();
    expect(detail).toMatchObject({ status: 'processing' });
    expect(detail.error?.name).toBe('WavespeedSyncTimeoutException');
    expect(detail.resultUrl).toBe(`${small.origin}/api/v3/predictions/${detail.taskId}/result`);
    const headers = { Authorization: `Bearer ${small.apiKey}` };
    const later = await fetch(String(detail.resultUrl), { headers });
    expect(await later.json()).toMatchObject({ code: 200, data: { status: 'created', error: '' } });
  } finally {
    await small.stop();
  }
});

test('the quick starts of the documentation make a video as they are', full, async () => {
  test.setTimeout(300_000);
  // A video takes ten seconds: fetch and Python make theirs with KINORA_SOAK set only.
  const starts = quickStarts().filter(
    ({ name }) => process.env.KINORA_SOAK || /\.sh$|client/.test(name),
  );
  const made = starts.map(async ({ command, name }) => {
    const folder = await mkdtemp(path.join(home, 'start-'));
    await copyFile(still(), path.join(folder, 'still.png'));
    const program = path.resolve('app/docs/snippets', name);
    // Run by a small Node program: the child is in a group of its own, and ends with it.
    const run = `const { spawnSync } = require('node:child_process');
      const { status, stderr } = spawnSync(${JSON.stringify(command)}, [${JSON.stringify(program)}], { encoding: 'utf8' });
      process.stderr.write(stderr ?? ''); process.exit(status ?? 1);`;
    const env = { KINORA_URL: server.origin, KINORA_KEY: server.apiKey };
    const child = startChild(['-e', run], { cwd: folder, env });
    const stderr = outputOf(child.stderr);
    const code = await exitCode(child);
    expect(code, `${name}: ${stderr()}`).toBe(0);
    const facts = await inspectVideo(new Blob([await readFile(path.join(folder, 'video.mp4'))]));
    expect(facts, name).toMatchObject(fixtureVideo);
  });
  await Promise.all(made);
});

test('the tab wrote nothing to its console meanwhile', full, () => {
  expect(tab.said).toEqual([]);
});
