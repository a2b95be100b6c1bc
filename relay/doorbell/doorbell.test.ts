import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import type { DoorbellServerMessage, WorkerDeclaration } from '../../lib/contract/v3';
import { createKeys } from '../access/keys';
import { readConfig } from '../config';
import { createJobs } from '../jobs';
import { createLimits } from '../limits';
import type { Caller, Doorbell, Jobs, Keys, Limits } from '../relay';
import { workers } from '../store/schema';
import { openTestStore, type TestStore } from '../testing/store';
import { createDoorbell } from '.';

const log = pino({ level: 'silent' });
const publicUrl = 'https://kinora.example';
const hex = () => randomBytes(16).toString('hex');
const declarationOf = (id = hex()): WorkerDeclaration => ({
  worker_id: id,
  name: 'Chrome on Linux',
  model: 'tiny',
  precision: 'f32',
  backend: 'wasm',
  sizes: ['1280*720', '720*1280'],
  loras: true,
  max_duration: 10,
});

let test_: TestStore;
let keys: Keys;
let jobs: Jobs;
let doorbell: Doorbell;
let server: Server;
/** Wide enough for all tests but those of limits. */
let limits: Limits;
let origin = '';
const sockets: WebSocket[] = [];
/** The first statements of a fresh database take their time. */
const eventually = <Value>(read: () => Value) => expect.poll(read, { timeout: 30_000 });

beforeAll(async () => {
  test_ = await openTestStore('pglite');
  const { store } = test_;
  const config = readConfig({ ...test_.settings, KINORA_PUBLIC_URL: publicUrl });
  keys = createKeys({ store, config, log });
  jobs = createJobs({ store, config, log, outboxRow: () => null });
}, 60_000);
afterAll(() => test_?.close(), 60_000);

beforeEach(async () => {
  limits = limitsOf({});
  doorbell = newDoorbell();
  server = createServer();
  server.on('upgrade', (request, socket, head) => doorbell.upgrade(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/api/worker/doorbell`;
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await doorbell.close();
  vi.useRealTimers();
  await new Promise((resolve) => server.close(resolve));
});

function newDoorbell(): Doorbell {
  const config = { KINORA_PUBLIC_URL: publicUrl };
  return createDoorbell({ store: test_.store, keys, jobs, limits, config, log });
}

/** From now on the doorbell asks for a sign of life when the test says so. */
async function pingByHand(): Promise<() => void> {
  await doorbell.close();
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  doorbell = newDoorbell();
  return () => void vi.advanceTimersToNextTimer();
}

function limitsOf(settings: Record<string, string>): Limits {
  return createLimits({ store: test_.store, config: readConfig(settings) });
}

interface Peer {
  readonly socket: WebSocket;
  readonly heard: DoorbellServerMessage[];
  readonly closed: Promise<{ code: number; reason: string }>;
  say(message: unknown): void;
}

async function connect(options: { headers?: Record<string, string> } = {}): Promise<Peer> {
  const socket = new WebSocket(origin, options);
  sockets.push(socket);
  const heard: DoorbellServerMessage[] = [];
  socket.on('message', (data) => heard.push(JSON.parse(String(data)) as DoorbellServerMessage));
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve());
    socket.once('error', reject);
  });
  return { socket, heard, closed, say: (message) => socket.send(JSON.stringify(message)) };
}

async function workerToken(owner: string, shared = false): Promise<{ key: string; id: string }> {
  const { key, record } = await keys.create({ kind: 'worker', owner, name: 'tab', shared });
  return { key, id: record.id };
}

/** A tab that has said hello and been welcomed. */
async function tab(
  token: string,
  declaration = declarationOf(),
  state: 'idle' | 'busy' | 'paused' = 'idle',
): Promise<Peer> {
  const peer = await connect();
  peer.say({ type: 'hello', token, declaration, state });
  await eventually(() => peer.heard).toContainEqual(expect.objectContaining({ type: 'welcome' }));
  return peer;
}

async function apiCaller(owner: string): Promise<Caller> {
  const { key } = await keys.create({ kind: 'api', owner, name: 'app' });
  return keys.authenticate(`Bearer ${key}`, 'api');
}

const submit = (caller: Caller) =>
  jobs.submit({
    id: hex(),
    caller,
    model: 'kinora/wan-2.2/i2v-720p-lora',
    webhookUrl: null,
    input: {
      image: 'https://example.com/a.png',
      prompt: 'a boat',
      negative_prompt: '',
      loras: [],
      size: '1280*720',
      num_inference_steps: 30,
      duration: 5,
      guidance_scale: 5,
      flow_shift: 5,
      seed: 1,
      enable_prompt_optimizer: false,
      enable_safety_checker: true,
    },
    image: { key: 'inputs/a', type: 'image/png', bytes: 10 },
    loras: [],
    ready: true,
    idempotency: null,
  });
const rings = (peer: Peer) => peer.heard.filter(({ type }) => type === 'job_available').length;

describe('who is let in', () => {
  test('a worker token; the row of its worker is there as long as the socket', async () => {
    const { key } = await workerToken('ada', true);
    const declaration = declarationOf();
    const peer = await tab(key, declaration);
    expect(peer.heard[0]).toEqual({ type: 'welcome', owner: 'ada', shared: true });
    expect(doorbell.connected).toBe(1);
    await eventually(() => doorbell.list('ada')).toHaveLength(1);
    expect((await doorbell.list('ada'))[0]).toMatchObject({
      id: declaration.worker_id,
      owner: 'ada',
      name: 'Chrome on Linux',
      model: 'tiny',
      state: 'idle',
    });
    expect(await doorbell.list('bob')).toEqual([]);
    peer.say({ type: 'state', state: 'paused' });
    await eventually(async () => (await doorbell.list('ada'))[0]?.state).toBe('paused');
    peer.socket.close();
    await eventually(() => doorbell.list('ada')).toEqual([]);
    expect(doorbell.connected).toBe(0);
  });

  test('no other key, and no other message before the hello', async () => {
    const { key: apiKey } = await keys.create({ kind: 'api', owner: 'ada', name: 'app' });
    for (const token of [apiKey, 'nonsense']) {
      const peer = await connect();
      peer.say({ type: 'hello', token, declaration: declarationOf() });
      expect(await peer.closed).toMatchObject({ code: 4401 });
      expect(peer.heard).toEqual([{ type: 'refused', message: expect.any(String) }]);
    }
    const early = await connect();
    early.say({ type: 'state', state: 'idle' });
    early.say({ type: 'nonsense' });
    expect(await early.closed).toMatchObject({ code: 4400 });
    expect(doorbell.connected).toBe(0);
  });

  test('a token that is revoked while its socket is open is put out', async () => {
    const ping = await pingByHand();
    const { key, id } = await workerToken('rita');
    const peer = await tab(key);
    await keys.revoke(id);
    ping();
    expect(await peer.closed).toMatchObject({ code: 4401 });
  });

  test('wrong tokens and requests of an address are counted, as over HTTP', async () => {
    await doorbell.close();
    limits = limitsOf({ KINORA_BAD_KEYS_PER_ADDRESS: '1', KINORA_REQUESTS_PER_ADDRESS: '3' });
    doorbell = newDoorbell();
    for (const sentence of ['not valid', 'Too many wrong keys']) {
      const peer = await connect();
      peer.say({ type: 'hello', token: 'nonsense', declaration: declarationOf() });
      expect(await peer.closed).toMatchObject({ code: 4401 });
      expect(peer.heard).toEqual([{ type: 'refused', message: expect.stringContaining(sentence) }]);
    }
    await expect(limits.badKey('127.0.0.1')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    await connect();
    await expect(connect()).rejects.toThrow('429');
  });

  test('so many strangers of one address, and one more when one has said hello', async () => {
    const { key } = await workerToken('ada');
    const strangers = await Promise.all(Array.from({ length: 50 }, () => connect()));
    await expect(connect()).rejects.toThrow('503');
    strangers[0]?.say({ type: 'hello', token: key, declaration: declarationOf() });
    await eventually(() => doorbell.connected).toBe(1);
    await connect();
  });

  test('pages of our own origin only', async () => {
    await connect({ headers: { Origin: publicUrl } });
    await connect({ headers: { Origin: origin.replace(/^ws(.*)\/api.*$/, 'http$1') } });
    for (const Origin of ['https://evil.example', 'null', 'http://kinora.example']) {
      await expect(connect({ headers: { Origin } })).rejects.toThrow('403');
    }
  });

  test('a message that is too long, binary, or a second hello ends it', async () => {
    const { key } = await workerToken('ada');
    const long = await tab(key);
    long.socket.send('x'.repeat(20_000));
    expect(await long.closed).toMatchObject({ code: 1009 });
    const binary = await tab(key);
    binary.socket.send(Buffer.from('{"type":"state","state":"idle"}'));
    expect(await binary.closed).toMatchObject({ code: 4400 });
    const again = await tab(key);
    again.say({ type: 'hello', token: key, declaration: declarationOf() });
    expect(await again.closed).toMatchObject({ code: 4400 });
  });
});

describe('what is rung', () => {
  test('a job rings idle tabs of its owner, a bounded number of them', async () => {
    const { key } = await workerToken('olga');
    const { key: other } = await workerToken('otto', true);
    const tabs = await Promise.all(Array.from({ length: 7 }, () => tab(key)));
    const busy = await tab(key, declarationOf(), 'busy');
    const foreign = await tab(other);
    await submit(await apiCaller('olga'));
    await eventually(() => tabs.filter((peer) => rings(peer) === 1)).toHaveLength(4);
    // The next job rings those that were not rung.
    await submit(await apiCaller('olga'));
    await eventually(() => tabs.filter((peer) => rings(peer) > 0)).toHaveLength(7);
    expect(rings(busy) + rings(foreign)).toBe(0);
    busy.say({ type: 'state', state: 'idle' });
    await eventually(async () => {
      const workers = await doorbell.list('olga');
      return workers.filter(({ state }) => state === 'idle').length;
    }).toBe(8);
    await submit(await apiCaller('olga'));
    await eventually(() => rings(busy)).toBe(1);
    expect(rings(foreign)).toBe(0);
  });

  test('a cancel goes to the tab that has the job', async () => {
    const { key } = await workerToken('carl');
    const declaration = declarationOf();
    const [has, hasNot] = await Promise.all([tab(key, declaration), tab(key)]);
    const { id } = await submit(await apiCaller('carl'));
    const worker = await keys.authenticate(`Bearer ${key}`, 'worker');
    const { job } = await jobs.claim(worker, declaration);
    expect(job?.id).toBe(id);
    await jobs.cancel(id, 'carl');
    await eventually(() => has.heard).toContainEqual({ type: 'cancel', id });
    expect(hasNot.heard).not.toContainEqual({ type: 'cancel', id });
  });

  test('a drain is told; idle tabs go, a busy one may finish, nobody new comes', async () => {
    const { key } = await workerToken('dora');
    const [idle, busy] = [await tab(key), await tab(key, declarationOf(), 'busy')];
    doorbell.drain();
    expect(await idle.closed).toMatchObject({ code: 1012 });
    await eventually(() => busy.heard).toContainEqual({ type: 'drain' });
    expect(idle.heard).toContainEqual({ type: 'drain' });
    await eventually(() => doorbell.connected).toBe(1);
    await expect(connect()).rejects.toThrow('503');
    await doorbell.close();
    expect(await busy.closed).toMatchObject({ code: 1001 });
  });
});

describe('the list of workers', () => {
  test('a worker without a socket is listed while it is heard of by HTTP', async () => {
    const { key } = await workerToken('hanna');
    const worker = await keys.authenticate(`Bearer ${key}`, 'worker');
    const declaration = declarationOf();
    await doorbell.seen(worker, declaration, 'busy');
    expect(await doorbell.list('hanna')).toMatchObject([{ state: 'busy' }]);
    // Its socket comes and goes; the row stays, as it is busy.
    const peer = await tab(key, declaration, 'busy');
    peer.socket.close();
    await eventually(() => doorbell.connected).toBe(0);
    await doorbell.seen(worker, declaration, 'idle');
    expect(await doorbell.list('hanna')).toMatchObject([{ state: 'idle' }]);
  });

  test('a tab that changes its state all the time is written down once a second', async () => {
    const { key } = await workerToken('flip');
    const declaration = declarationOf();
    const peer = await tab(key, declaration);
    await eventually(() => doorbell.list('flip')).toHaveLength(1);
    const { db } = test_.store;
    await db.execute(sql`create sequence worker_writes`);
    await db.execute(sql`create function note_write() returns trigger language plpgsql as
      'begin perform nextval(''worker_writes''); return new; end'`);
    await db.execute(sql`create trigger note_write after update on workers
      for each row execute function note_write()`);
    for (let flips = 0; flips < 50; flips++) {
      peer.say({ type: 'state', state: flips % 2 === 0 ? 'busy' : 'idle' });
    }
    peer.say({ type: 'state', state: 'paused' });
    // The last one is what stands in the end.
    await eventually(async () => (await doorbell.list('flip'))[0]?.state).toBe('paused');
    const [row] = await db
      .select({ writes: sql<string>`(select last_value from worker_writes)` })
      .from(workers)
      .limit(1);
    await db.execute(sql`drop trigger note_write on workers`);
    // Each second that the flips take on a busy machine writes once more.
    expect(Number(row?.writes)).toBeLessThanOrEqual(4);
  });

  test('another owner’s worker cannot take over an id', async () => {
    const declaration = declarationOf();
    const [mine, thief] = [await workerToken('mia'), await workerToken('theo')];
    await doorbell.seen(
      await keys.authenticate(`Bearer ${mine.key}`, 'worker'),
      declaration,
      'idle',
    );
    await doorbell.seen(
      await keys.authenticate(`Bearer ${thief.key}`, 'worker'),
      declaration,
      'busy',
    );
    expect(await doorbell.list('mia')).toHaveLength(1);
    expect(await doorbell.list('theo')).toEqual([]);
  });

  test('a socket whose other end has gone without a word is cut', async () => {
    const ping = await pingByHand();
    const { key } = await workerToken('greta');
    const [gone, there] = [await tab(key), await tab(key)];
    // From now on it answers no ping, like a machine that lost its network.
    gone.socket.pause();
    const asked = once(there.socket, 'ping');
    ping();
    await asked;
    // Said after the answer to the ping: who has heard this has heard that.
    there.say({ type: 'state', state: 'busy' });
    const states = async () => (await doorbell.list('greta')).map(({ state }) => state);
    await eventually(states).toContain('busy');
    expect(doorbell.connected).toBe(2);
    ping();
    await eventually(() => doorbell.connected).toBe(1);
    await eventually(states).toEqual(['busy']);
    expect(there.socket.readyState).toBe(WebSocket.OPEN);
  });
});
