import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { partsFolder } from '../blobs';
import { type FilesTest, startFilesTest } from '../testing/node';

const boundary = '----kinora';
const closing = `\r\n--${boundary}--\r\n`;
const head = (field: string, filename: string, type = 'application/octet-stream') =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${field}"; filename="${filename}"\r\n` +
  `Content-Type: ${type}\r\n\r\n`;

let node: FilesTest;
/** Requests that the server saw being cut, and has done with. */
let cutOff = 0;
const log = pino(
  {},
  {
    write(line) {
      if (line.includes('"request cut off"')) cutOff += 1;
    },
  },
);
beforeAll(async () => {
  node = await startFilesTest({ log });
}, 60_000);
afterAll(() => node.stop());

/** Errors that would have ended the server: nobody else listens for them in a test. */
const uncaught: unknown[] = [];
const note = (error: unknown) => uncaught.push(error);
beforeAll(() => void process.on('uncaughtException', note));
afterAll(() => void process.off('uncaughtException', note));
afterEach(async () => {
  // An error of a stream comes a turn later.
  await delay(20);
  expect(uncaught.splice(0)).toEqual([]);
});

/** Sends the pieces one after the other; `cut` breaks the connection after the last. */
async function send(pieces: readonly (string | Buffer)[], cut = false): Promise<number | null> {
  const { hostname, port } = new URL(node.origin);
  const call = httpRequest({
    hostname,
    port,
    method: 'POST',
    path: '/api/v3/media/upload/binary',
    headers: {
      Authorization: `Bearer ${node.apiKey}`,
      'Content-Type': `multipart/form-data; boundary=${boundary}`,
    },
  });
  const answered = once(call, 'response').then(
    ([response]: IncomingMessage[]) => response ?? null,
    () => null,
  );
  for (const piece of pieces) {
    // On its way: what is not would never be, once the call is cut.
    await new Promise((resolve) => call.write(piece, resolve));
    await delay(5);
  }
  const cutBefore = cutOff;
  if (cut) call.destroy();
  else call.end();
  const response = await answered;
  if (cut) await expect.poll(() => cutOff, { timeout: 20_000, interval: 5 }).toBe(cutBefore + 1);
  if (response === null) return null;
  await text(response);
  return response.statusCode ?? null;
}

const large = Buffer.alloc(2_000_000, 'x');

describe('a form that is wrong, larger than one piece', () => {
  it.each([
    ['a kind that is not taken', [head('file', 'clip.mp4', 'video/mp4'), large, closing]],
    ['a name that is too long', [head('file', `${'n'.repeat(300)}.png`), large, closing]],
    ['no closing boundary', [head('file', 'still.png', 'image/png'), large]],
    ['no closing boundary, in another field', [head('other', 'still.png'), large]],
    ['no bytes and no boundary', [head('file', 'still.png', 'image/png')]],
    ['no file', [head('other', 'still.png'), large, closing]],
  ])('is refused: %s', async (_case, pieces) => {
    expect(await send(pieces)).toBe(400);
  });

  it.each(['file', 'other'])('is dropped when it is cut in the field "%s"', async (field) => {
    expect(await send([head(field, 'still.png', 'image/png')], true)).toBeNull();
    expect(await send([head(field, 'still.png', 'image/png'), 'some bytes'], true)).toBeNull();
    expect(await send([head(field, 'still.png', 'image/png'), large], true)).toBeNull();
  });

  it('leaves no file, and the next form is accepted', async () => {
    const png = [head('file', 'still.png', 'image/png'), node.image, closing];
    expect(await send(png)).toBe(200);
    // Those that were cut before may still be on their way out.
    const left = async () =>
      (await readdir(partsFolder(node.relay.config))).filter((name) => name.startsWith('tmp-'));
    await expect.poll(left, { timeout: 20_000 }).toEqual([]);
  });
});
