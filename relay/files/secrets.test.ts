/** @module-tag full */

import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { userAgent } from '../../lib/contract/user-agent';
import { serve, type TestServer } from '../guard/testing/server';
import { declarationOf } from '../testing/api';
import { type FilesTest, startFilesTest } from './testing/node';

/** Tokens of a caller in the addresses of a submission: they serve to fetch, and are told to nobody. */
const secret = 'hush-4711';
const query = `?token=${secret}&type=Model`;
const publicUrl = 'https://kinora.example';

let node: FilesTest;
let web: TestServer;
let logged = '';
const fetched: { url: string; agent: string; body: string }[] = [];

beforeAll(async () => {
  const write = (line: unknown, _: unknown, done: () => void) => {
    logged += String(line);
    done();
  };
  node = await startFilesTest({
    settings: { KINORA_PUBLIC_URL: publicUrl },
    log: pino({ level: 'debug' }, new Writable({ write })),
  });
  web = await serve((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += String(chunk);
    });
    request.on('end', () => {
      const { url = '', headers } = request;
      fetched.push({ url, agent: headers['user-agent'] ?? '', body });
      if (!url.includes(secret)) response.writeHead(403).end();
      else response.end(url.startsWith('/image') ? node.image : node.lora);
    });
  });
}, 60_000);
afterAll(async () => {
  await web?.close();
  await node?.stop();
});

it('a token in an address is in no answer, webhook, worker’s message or log, and opens its host', async () => {
  const address = (path: string) => `${web.origin}${path}${query}`;
  const sent = {
    prompt: 'A test',
    image: address('/image.png'),
    last_image: address('/image-2.png'),
    loras: [
      { path: address('/style.safetensors'), scale: 0.5 },
      { path: `owner/name/style.safetensors${query}` },
    ],
    webhook: address('/hook'),
  };
  const said: string[] = [];
  const call = async (method: string, path: string, body?: unknown, key = node.apiKey) => {
    const { status, json } = await node.send(method, path, { key, body });
    said.push(JSON.stringify(json));
    return { status, json };
  };
  const submitted = await call('POST', '/api/v3/kinora/wan-2.2/i2v-720p-lora', sent);
  expect(submitted.status, submitted.json.message).toBe(200);
  const { id } = submitted.json.data;
  const ready = async () => (await node.relay.jobs.get(id))?.ready;
  await expect.poll(ready, { timeout: 20_000 }).toBe(true);

  const worker = declarationOf({ knows: ['last_image', 'lora_5b'] });
  const claim = { ...worker, wait_seconds: 0 };
  const { job } = (await call('POST', '/api/worker/claim', claim, node.workerToken)).json.data;
  const paths = [`${web.origin}/style.safetensors`, 'owner/name/style.safetensors'];
  expect(job.loras.map((lora: { path: string }) => lora.path)).toEqual(paths);
  expect(job.parameters.loras.map((lora: { path: string }) => lora.path)).toEqual(paths);
  const lora = await node.get(job.loras[0].url);
  expect(Buffer.from(await lora.arrayBuffer()).equals(node.lora)).toBe(true);

  const shown = (await call('GET', `/api/v3/predictions/${id}/result`)).json.data.input;
  expect(shown.image).toBe(`${web.origin}/image.png`);
  expect(shown.last_image).toBe(`${web.origin}/image-2.png`);
  await call('POST', '/api/v3/predictions', { include_inputs: true });
  const failed = { lease_token: job.lease_token, code: 'LORA_INVALID', retryable: false };
  const failure = { ...failed, message: `The LoRA ${paths[0]} cannot be used.` };
  await call('POST', `/api/worker/jobs/${id}/fail`, failure, node.workerToken);
  const hook = () => fetched.find(({ url }) => url.startsWith('/hook'));
  await expect.poll(() => hook()?.body, { timeout: 20_000 }).toContain(id);
  const { items } = (await call('GET', '/api/v3/webhook/deliveries')).json.data;
  expect(items[0].url).toBe(`${web.origin}/hook`);

  for (const text of [...said, hook()?.body ?? '', logged]) expect(text).not.toContain(secret);
  expect(logged).toContain('webhook delivered');
  // The whole addresses were used, by a program that names itself.
  for (const path of ['/image.png', '/image-2.png', '/style.safetensors', '/hook']) {
    const found = fetched.find(({ url }) => url === `${path}${query}`);
    expect(found?.agent, path).toBe(userAgent(publicUrl));
  }
});

it('an image that the server keeps for its owner stays readable at the address in `input`', async () => {
  const image = `data:image/png;base64,${node.image.toString('base64')}`;
  const body = { image, prompt: 'A test', loras: [{ path: 'https://a.example/x?y=z' }] };
  const refused = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', {
    ...body,
    loras: [{ path: `https://user:${secret}@a.example/x.safetensors` }],
  });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).not.toContain(secret);
  const { body: taken } = await node.api('/api/v3/kinora/wan-2.2/i2v-720p-lora', body);
  const { input } = taken.data;
  expect(input.loras[0].path).toBe('https://a.example/x');
  expect((await node.get(input.image.replace(publicUrl, ''))).status).toBe(200);
});
