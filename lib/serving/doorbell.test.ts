import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket as NodeSocket, WebSocketServer } from 'ws';
import type { DoorbellClientMessage, DoorbellServerMessage } from '../contract/v3/worker';
import { Doorbell, type Socket } from './doorbell';

let server: WebSocketServer;
let bell: Doorbell | undefined;
const heard: DoorbellServerMessage[] = [];
const open: boolean[] = [];
const waits: number[] = [];

beforeEach(async () => {
  heard.length = 0;
  open.length = 0;
  waits.length = 0;
  server = new WebSocketServer({ port: 0, host: '127.0.0.1', path: '/api/worker/doorbell' });
  await once(server, 'listening');
});
afterEach(() => {
  bell?.close();
  for (const socket of server.clients) socket.terminate();
  server.close();
});

/** A slow machine may take a while. */
const soon = { timeout: 30_000 };
const hello = { type: 'hello', token: 't' } as unknown as DoorbellClientMessage;

function ring(): Doorbell {
  const { port } = server.address() as AddressInfo;
  bell = new Doorbell({
    server: `http://127.0.0.1:${port}`,
    hello: () => hello,
    onMessage: (message) => heard.push(message),
    onOpen: (is) => open.push(is),
    connect: (url) => new NodeSocket(url) as unknown as Socket,
    clock: {
      now: Date.now,
      random: () => 0,
      sleep: async (ms, signal) => {
        waits.push(ms);
        signal?.throwIfAborted();
      },
    },
  });
  return bell;
}

async function nextTab(): Promise<NodeSocket> {
  const [socket] = (await once(server, 'connection')) as [NodeSocket];
  const [first] = (await once(socket, 'message')) as [Buffer];
  expect(JSON.parse(`${first}`)).toEqual(hello);
  return socket;
}

test('says hello, hears the ring, and ignores what it does not know', async () => {
  const tab = nextTab();
  const bell = ring();
  const socket = await tab;
  bell.say({ type: 'state', state: 'busy' });
  for (const message of ['{"type":"later"}', 'no json', '{"type":"welcome"}']) socket.send(message);
  socket.send(JSON.stringify({ type: 'welcome', owner: 'ann', shared: false }));
  socket.send(JSON.stringify({ type: 'job_available' }));
  const types = () => heard.map(({ type }) => type);
  await expect.poll(types, soon).toEqual(['welcome', 'job_available']);
  expect(open).toEqual([true]);
  bell.say({ type: 'state', state: 'paused' });
  const [said] = (await once(socket, 'message')) as [Buffer];
  // What was said before the welcome was not sent.
  expect(JSON.parse(`${said}`)).toEqual({ type: 'state', state: 'paused' });
});

test('comes back with growing waits, and a welcome makes them short again', async () => {
  let tab = nextTab();
  ring();
  for (let n = 0; n < 3; n++) {
    const socket = await tab;
    tab = nextTab();
    socket.terminate();
  }
  const socket = await tab;
  expect(waits).toEqual([500, 1000, 2000]);
  socket.send(JSON.stringify({ type: 'welcome', owner: 'ann', shared: false }));
  await expect.poll(() => open, soon).toEqual([true]);
  tab = nextTab();
  socket.terminate();
  await tab;
  expect(waits).toEqual([500, 1000, 2000, 500]);
  expect(open).toEqual([true, false]);
});

test('a refusal is told, and ends it', async () => {
  const tab = nextTab();
  ring();
  const socket = await tab;
  const closed = once(socket, 'close');
  socket.send(JSON.stringify({ type: 'refused', message: 'Unknown token.' }));
  await closed;
  expect(heard).toEqual([{ type: 'refused', message: 'Unknown token.' }]);
  expect(waits).toEqual([]);
});
