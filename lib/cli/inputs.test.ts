import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../contract/testing/folder';
import { checkLora, readImage, readManifest, sortLoras } from './inputs';

const still = new Uint8Array(
  Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  ),
);
const never = new AbortController().signal;
const folder = temporaryFolder();
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
});

async function file(name: string, bytes: Uint8Array): Promise<string> {
  const full = path.join(folder(), name);
  await writeFile(full, bytes);
  return full;
}

/** Address of a server of this machine that answers everything in one way. */
async function served(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/pictures/still.png`;
}

describe('the image', () => {
  it('is the bundled sample when none is named', async () => {
    const image = await readImage(undefined, never);
    expect(image).toMatchObject({ name: 'still.jpg', mimeType: 'image/jpeg' });
  });

  it('is read from a file', async () => {
    const image = await readImage(await file('a.png', still), never);
    expect(image).toMatchObject({ name: 'a.png', mimeType: 'image/png' });
    expect(image.buffer.equals(still)).toBe(true);
  });

  it('gets an end where only that is missing', async () => {
    const image = await readImage('lib/video/testing/progressive-no-eoi.jpg', never);
    expect(image.buffer.subarray(-2).toString('hex')).toBe('ffd9');
    expect(image.buffer.length).toBe(5004);
  });

  it('is fetched from an address', async () => {
    let agent: string | undefined;
    const address = await served((request, response) => {
      agent = request.headers['user-agent'];
      response.end(still);
    });
    const image = await readImage(address, never);
    expect(agent).toMatch(/^Kinora\/\d+\.\d+\.\d+ \(\+\S+\)$/);
    expect(image).toMatchObject({ name: 'still.png', mimeType: 'image/png' });
    expect(image.buffer.equals(still)).toBe(true);
  });

  // Each way in which bytes are no image: lib/video/sniff.test.ts.
  it.each([
    ['missing.png', undefined, 'IMAGE_MISSING'],
    ['text.png', new TextEncoder().encode('not an image at all'), 'IMAGE_UNREADABLE'],
  ])('%s is refused', async (name, bytes, code) => {
    const full = bytes ? await file(name, bytes) : path.join(folder(), name);
    await expect(readImage(full, never)).rejects.toMatchObject({ code });
  });

  it('is refused when it is a folder', async () => {
    await expect(readImage(folder(), never)).rejects.toMatchObject({ code: 'IMAGE_UNREADABLE' });
  });

  it('that a server does not have is unreachable, with the status', async () => {
    const address = await served((_, response) => response.writeHead(404).end());
    await expect(readImage(address, never)).rejects.toMatchObject({
      code: 'IMAGE_UNREACHABLE',
      message: `${address} answered 404.`,
    });
  });

  it('of a server that is not there is unreachable', async () => {
    await expect(readImage('http://127.0.0.1:9/still.png', never)).rejects.toMatchObject({
      code: 'IMAGE_UNREACHABLE',
    });
  });

  it('that announces too many bytes is not fetched', async () => {
    const address = await served((_, response) => {
      response.writeHead(200, { 'content-length': 20_000_001 });
      response.flushHeaders();
    });
    await expect(readImage(address, never)).rejects.toMatchObject({ code: 'IMAGE_TOO_LARGE' });
  });

  it('that sends too many bytes without saying so is cut off', async () => {
    const address = await served((_, response) => {
      response.write(new Uint8Array(20_000_001));
    });
    await expect(readImage(address, never)).rejects.toMatchObject({ code: 'IMAGE_TOO_LARGE' });
  });

  it('stops being fetched when the run is cancelled', async () => {
    const abort = new AbortController();
    const address = await served(() => abort.abort());
    await expect(readImage(address, abort.signal)).rejects.toMatchObject({ name: 'AbortError' });
  });
});

describe('the other inputs', () => {
  it('a LoRA has to be a file', async () => {
    await expect(checkLora(await file('a.safetensors', still))).resolves.toBeUndefined();
    await expect(checkLora(folder())).rejects.toMatchObject({ code: 'LORA_MISSING' });
    await expect(checkLora(path.join(folder(), 'none'))).rejects.toMatchObject({
      code: 'LORA_MISSING',
    });
  });

  it('a model has to be one of the listed ids, which the remedy names', async () => {
    expect((await readManifest('tiny'))?.maxClipFrames).toBe(121);
    await expect(readManifest('../tiny')).rejects.toMatchObject({
      code: 'MODEL_UNKNOWN',
      remedy: expect.stringMatching(/^Use one of: mini, wan2\.2-ti2v-5b, .*-720p\.$/),
    });
  });
});

it('leaves the manifest of an added model to the library', async () => {
  expect(await readManifest('mine', ['mine'])).toBeNull();
  await expect(readManifest('other', ['mine'])).rejects.toMatchObject({
    code: 'MODEL_UNKNOWN',
    remedy: expect.stringMatching(/mini, .*mine\.$/),
  });
});

it('takes a LoRA for a file where there is one, else for a name of the library if there is one', async () => {
  const here = await file('here.safetensors', new Uint8Array(1));
  const named = [
    { path: here, scale: 1 },
    { path: 'kept.safetensors', scale: 2 },
  ];
  expect(await sortLoras(named, true)).toEqual({
    loras: [{ path: here, scale: 1 }],
    libraryLoras: [{ name: 'kept.safetensors', scale: 2 }],
  });
  await expect(sortLoras(named, false)).rejects.toMatchObject({ code: 'LORA_MISSING' });
});
