import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { errorExample, webhookExample } from '../../lib/contract/v3';
import { snippetNames } from './snippet';
import { type QuickStart, quickStarts } from './testing/quick-starts';

/** The tests load the files that the page shows, as a reader would run them. */
const folder = fileURLToPath(new URL('./snippets', import.meta.url));
type Headers = Readonly<Record<string, string>>;
type Verify = (body: Buffer, headers: Headers, secret: string) => unknown;
const load = async <T>(name: string, member: string): Promise<T> => {
  const exports = (await import(path.join(folder, name))) as Record<string, T>;
  const found = exports[member];
  if (found === undefined) throw new Error(`${name} has no ${member}`);
  return found;
};

const secret = `whsec_${Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64')}`;
const body = Buffer.from(JSON.stringify({ ...webhookExample, error: 'ä, ☃' }));

/** Both signatures, computed as lib/contract/v3/README.md describes them, without the relay's code. */
function signed(at = Math.floor(Date.now() / 1000), by = secret): Headers {
  const id = 'msg_0d7a4c356f1c2b9eb8e1f2a3d4c5b6a7';
  const text = by.slice('whsec_'.length);
  const hmac = (key: string | Buffer) =>
    createHmac('sha256', key).update(`${id}.${at}.`).update(body);
  return {
    'webhook-id': id,
    'webhook-timestamp': String(at),
    'webhook-signature': `v3,${hmac(text).digest('hex')}`,
    'svix-id': id,
    'svix-timestamp': String(at),
    'svix-signature': `v1,${hmac(Buffer.from(text, 'base64')).digest('base64')}`,
  };
}

const now = () => Math.floor(Date.now() / 1000);
const tampered = Buffer.concat([body, Buffer.from(' ')]);
const otherSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const rejectedHeaders: readonly [string, () => Headers][] = [
  ['an old timestamp', () => signed(now() - 301)],
  // One minute above the tolerance: on a slow machine, Python takes some time to start.
  ['a future timestamp', () => signed(now() + 360)],
  ['another secret', () => signed(now(), otherSecret)],
  ['missing headers', () => ({})],
];

test('every file of the folder is shown and tested', async () => {
  const files = (await readdir(folder)).filter((name) => !name.startsWith('__'));
  expect(files.sort()).toEqual([...snippetNames].sort());
});

describe.each([
  ['verify-webhook.mjs', 'verifyWebhook', true],
  ['verify-standard.mjs', 'verifyStandard', { ...webhookExample, error: 'ä, ☃' }],
  ['verify-svix.mjs', 'verifySvix', { ...webhookExample, error: 'ä, ☃' }],
])('%s', (file, name, accepted) => {
  /** What it returns; false also where it throws. */
  const verify = async (content: Buffer, headers: Headers) => {
    const checked = await load<Verify>(file, name);
    try {
      return checked(content, headers, secret);
    } catch {
      return false;
    }
  };

  test('accepts a valid signature', async () => {
    expect(await verify(body, signed())).toEqual(accepted);
  });
  test.each(rejectedHeaders)('rejects %s', async (_, headers) => {
    expect(await verify(body, headers())).toBe(false);
  });
  test('rejects a changed body and a truncated signature', async () => {
    expect(await verify(tampered, signed())).toBe(false);
    const cut = { 'webhook-signature': 'v3,00', 'svix-signature': 'v1,00' };
    expect(await verify(body, { ...signed(), ...cut })).toBe(false);
  });
});

test('receive-webhook.mjs works once per prediction and rejects an invalid signature', async () => {
  type Create = (secret: string, whenFinished: (body: unknown) => void) => Server;
  const create = await load<Create>('receive-webhook.mjs', 'createReceiver');
  const finished: unknown[] = [];
  const server = create(secret, (one) => finished.push(one)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const send = async (headers: Headers | IncomingHttpHeaders) => {
      const method = 'POST';
      const sent = { method, body, headers: headers as Record<string, string> };
      return (await fetch(`http://127.0.0.1:${port}/`, sent)).status;
    };
    const headers = signed();
    expect([await send(headers), await send(headers), await send({})]).toEqual([204, 204, 401]);
    expect(finished).toEqual([{ ...webhookExample, error: 'ä, ☃' }]);
  } finally {
    server.close();
  }
});

const python = spawnSync('python3', ['--version']).status === 0;

test.skipIf(!python)('verify_webhook.py accepts only valid signatures', () => {
  const cases = [
    { body, headers: signed() },
    { body: tampered, headers: signed() },
    ...rejectedHeaders.map(([, headers]) => ({ body, headers: headers() })),
  ];
  const program = [
    'import base64, json, sys',
    'sys.dont_write_bytecode = True',
    'from verify_webhook import verify_webhook',
    'given = json.load(sys.stdin)',
    'print(json.dumps([verify_webhook(base64.b64decode(c["body"]), c["headers"], given["secret"]) for c in given["cases"]]))',
  ].join('\n');
  const { stdout, stderr } = spawnSync('python3', ['-c', program], {
    cwd: folder,
    encoding: 'utf8',
    input: JSON.stringify({
      secret,
      cases: cases.map((one) => ({ ...one, body: one.body.toString('base64') })),
    }),
  });
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toEqual([true, false, false, false, false, false]);
});

/** As the documentation has it; but some shells would break a JSON text at such a line end. */
const detail = 'num_inference_steps must be\na whole number.';
const refusal = { ...errorExample, details: [{ field: 'num_inference_steps', message: detail }] };

/** A server that refuses whatever it is asked. */
async function startRefusing(): Promise<Server> {
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    const headers = { 'Content-Type': 'application/json' };
    response.writeHead(refusal.code, headers).end(JSON.stringify(refusal));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

test('every quick start says why it was refused', { tags: ['full'] }, async () => {
  const cwd = await mkdtemp(path.join(tmpdir(), 'kinora-refused-'));
  const server = await startRefusing();
  try {
    await writeFile(path.join(cwd, 'still.png'), 'a picture');
    const { port } = server.address() as AddressInfo;
    const env = { ...process.env, KINORA_URL: `http://127.0.0.1:${port}`, KINORA_KEY: 'kn_nobody' };
    const run = async ({ name, command }: QuickStart) => {
      const child = spawn(command, [path.join(folder, name)], { cwd, env });
      const stderr: Buffer[] = [];
      child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
      const [code] = (await once(child, 'close')) as [number];
      const text = Buffer.concat(stderr).toString();
      expect(code, name).not.toBe(0);
      expect(text, name).toContain(refusal.message);
      // Another's client tells the message alone.
      if (name.includes('client')) return;
      expect(text, name).toContain(detail);
    };
    await Promise.all(quickStarts().map(run));
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(cwd, { recursive: true });
  }
});
