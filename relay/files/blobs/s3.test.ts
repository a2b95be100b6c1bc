import { readdirSync, readlinkSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { putBlob } from '../testing/blobs';
import { type BlobStore, withLocalFile } from './index';
import { s3Blobs } from './s3';

let folder = '';
let stop = async () => {};
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-s3-client-'));
});
afterEach(async () => {
  await stop();
  await rm(folder, { recursive: true, force: true });
});

/** Blobs in a bucket that answers as it is told to. */
async function blobsOf(answer: RequestListener, idleMs?: number) {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const settings = {
    S3_BUCKET: 'b',
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    S3_REGION: 'us-east-1',
    S3_ACCESS_KEY_ID: 'a',
    S3_SECRET_ACCESS_KEY: 'b',
    S3_PREFIX: '',
  };
  return s3Blobs(settings, idleMs);
}

const options = { type: 'image/png', maxBytes: 4_000_000 };
const down = { code: 'STORAGE_DOWN' };

// Elsewhere it cannot be told which files are open.
describe.runIf(process.platform === 'linux')('a bucket that refuses', () => {
  const stillOpen = () =>
    readdirSync('/proc/self/fd').filter((name) => {
      try {
        return readlinkSync(`/proc/self/fd/${name}`).startsWith(folder);
      } catch {
        return false;
      }
    });

  it.each([
    ['before all of it was sent', 3_000_000],
    ['what it has read', 1000],
  ])('%s leaves no file open', async (_, bytes) => {
    const blobs = await blobsOf((request, response) => {
      request.resume();
      response.writeHead(403).end();
    });
    const put = putBlob(
      { blobs, temporary: folder },
      'inputs/ab/one',
      Buffer.alloc(bytes),
      options,
    );
    await expect(put).rejects.toMatchObject(down);
    expect(await readdir(folder)).toEqual([]);
    // An open file keeps its space although its name is gone.
    await expect.poll(stillOpen, { timeout: 20_000 }).toEqual([]);
  });
});

it('a connection that breaks is tried once more', async () => {
  let asked = 0;
  const blobs = await blobsOf((request, response) => {
    asked += 1;
    if (asked === 1) request.socket.resetAndDestroy();
    else request.resume().on('end', () => response.end());
  });
  await putBlob({ blobs, temporary: folder }, 'inputs/ab/one', Buffer.alloc(9), options);
  expect(asked).toBe(2);
});

it('a bucket that stops in the middle ends the read', async () => {
  const blobs = await blobsOf((_, response) => {
    response.writeHead(200, { 'content-length': 10 }).write('half');
  }, 50);
  let begun = false;
  const noticing: BlobStore = {
    ...blobs,
    async read(...order) {
      const answer = await blobs.read(...order);
      begun = true;
      return answer;
    },
  };
  // On a machine that pauses even the beginning may come too late: then once more.
  for (let tries = 0; !begun && tries < 20; tries += 1) {
    const read = withLocalFile(
      { blobs: noticing, temporary: folder },
      'inputs/ab/one',
      async () => undefined,
    );
    await expect(read).rejects.toMatchObject(down);
  }
  expect(begun).toBe(true);
  expect(await readdir(folder)).toEqual([]);
});

it('a bucket that says nothing is waited for so long, and not for ever', {
  tags: ['full'],
}, async () => {
  let asked = 0;
  const blobs = await blobsOf(() => {
    asked += 1;
  }, 50);
  // On a machine that pauses the wait may be over before the bucket was asked: then once more.
  let puts = 0;
  while (asked === 0 && puts < 20) {
    puts += 1;
    const put = putBlob({ blobs, temporary: folder }, 'inputs/ab/one', Buffer.alloc(9), options);
    await expect(put).rejects.toMatchObject(down);
  }
  expect(asked).toBeGreaterThan(0);
  expect(asked).toBeLessThanOrEqual(puts);
  const others = [blobs.stat, blobs.read, blobs.remove].map((operation) =>
    expect(operation('inputs/ab/one')).rejects.toMatchObject(down),
  );
  await Promise.all(others);
  expect(await readdir(folder)).toEqual([]);
});
