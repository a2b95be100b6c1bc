import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../../lib/contract/v3';
import { readConfig } from '../../config';
import { openBlobs } from '..';
import { putBlob } from '../testing/blobs';
import { startBucket, type TestBucket } from '../testing/s3';
import { partsFolder, type Storage, withLocalFile } from './index';

const options = { type: 'video/mp4', maxBytes: 1_000_000 };
let folder = '';
let bucket: TestBucket | undefined;

const storageOf = (settings: Record<string, string>): Storage => {
  const config = readConfig(settings);
  return { blobs: openBlobs(config), temporary: partsFolder(config) };
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-blobs-'));
  bucket = await startBucket();
});
afterAll(async () => {
  await bucket?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe.each(['disk', 's3'] as const)('blobs on %s', (kind) => {
  let storage: Storage;
  let blobs: Storage['blobs'];
  beforeAll(async () => {
    const settings = kind === 's3' ? bucket?.settings : {};
    storage = storageOf({ KINORA_DATA: path.join(folder, kind), ...settings });
    blobs = storage.blobs;
  });
  const bytes = randomBytes(300_000);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const readAll = async (key: string, range?: { first: number; last: number }) => {
    const read = await blobs.read(key, range);
    return { bytes: read.bytes, body: await buffer(read.body) };
  };

  it('is the store that the settings name, and answers', async () => {
    expect(blobs.folder === null).toBe(kind === 's3');
    await blobs.ping();
  });

  it('keeps bytes and streams of unknown length, with their hash', async () => {
    const pieces = Readable.from([bytes.subarray(0, 7), bytes.subarray(7)]);
    expect(await putBlob(storage, 'outputs/ab/one', bytes, options)).toEqual({
      bytes: 300_000,
      sha256,
    });
    expect(await putBlob(storage, 'outputs/ab/two', pieces, options)).toEqual({
      bytes: 300_000,
      sha256,
    });
    for (const key of ['outputs/ab/one', 'outputs/ab/two']) {
      expect(await blobs.stat(key)).toEqual({ bytes: 300_000 });
      expect((await readAll(key)).body.equals(bytes)).toBe(true);
    }
  });

  it('reads a range, both ends counted', async () => {
    await putBlob(storage, 'outputs/ab/range', bytes, options);
    const middle = await readAll('outputs/ab/range', { first: 100, last: 199 });
    expect(middle.bytes).toBe(100);
    expect(middle.body.equals(bytes.subarray(100, 200))).toBe(true);
    const end = await readAll('outputs/ab/range', { first: 299_990, last: 299_999 });
    expect(end.body.equals(bytes.subarray(-10))).toBe(true);
  });

  it('takes a file into the store', async () => {
    const file = path.join(folder, `${kind}-file`);
    await writeFile(file, bytes);
    await blobs.putFile('uploads/cd/file', file, 'image/png');
    expect((await readAll('uploads/cd/file')).body.equals(bytes)).toBe(true);
  });

  it('provides a blob as a local file', async () => {
    await putBlob(storage, 'outputs/ab/local', bytes, options);
    const read = withLocalFile(storage, 'outputs/ab/local', (file) => readFile(file));
    expect((await read).equals(bytes)).toBe(true);
  });

  it('stores nothing of a stream that is too large or breaks off', async () => {
    const large = Readable.from([bytes, bytes, bytes, bytes]);
    await expect(putBlob(storage, 'outputs/ab/large', large, options)).rejects.toMatchObject({
      code: 'TOO_LARGE',
    });
    const broken = Readable.from(
      (async function* () {
        yield bytes;
        throw new Error('cut');
      })(),
    );
    await expect(putBlob(storage, 'outputs/ab/cut', broken, options)).rejects.toThrow('cut');
    expect(await blobs.stat('outputs/ab/large')).toBeNull();
    expect(await blobs.stat('outputs/ab/cut')).toBeNull();
    await expect(readdir(storage.temporary)).resolves.toEqual([]);
  });

  it('reports a missing blob, and removes it without an error', async () => {
    await putBlob(storage, 'outputs/ab/gone', bytes, options);
    await blobs.remove('outputs/ab/gone');
    await blobs.remove('outputs/ab/gone');
    expect(await blobs.stat('outputs/ab/gone')).toBeNull();
    await expect(blobs.read('outputs/ab/gone')).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it.each(['../x', 'outputs/../../x', '/etc/passwd', 'outputs/.x', 'outputs//x', 'a', 'A/b', ''])(
    'takes no key that leads elsewhere: %j',
    async (key) => {
      await expect(async () => putBlob(storage, key, bytes, options)).rejects.toThrow(TypeError);
      await expect(async () => blobs.read(key)).rejects.toThrow(TypeError);
      await expect(async () => blobs.remove(key)).rejects.toThrow(TypeError);
    },
  );
});

describe('storage that does not work', () => {
  it('is STORAGE_DOWN: a bucket that is not there', async () => {
    const other = await startBucket();
    const storage = storageOf({ KINORA_DATA: folder, ...other.settings });
    await other.stop();
    for (const operation of [
      () => storage.blobs.ping(),
      () => storage.blobs.stat('outputs/ab/x'),
      () => putBlob(storage, 'outputs/ab/x', new Uint8Array(3), options),
    ]) {
      const thrown: unknown = await operation().catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(ApiError);
      expect(thrown).toMatchObject({ code: 'STORAGE_DOWN', status: 503 });
    }
  });

  it('is STORAGE_DOWN: a folder that is a file', async () => {
    const file = path.join(folder, 'no-folder');
    await writeFile(file, '');
    const storage = storageOf({ KINORA_DATA: file });
    await expect(storage.blobs.ping()).rejects.toMatchObject({ code: 'STORAGE_DOWN' });
    const put = putBlob(storage, 'outputs/ab/x', new Uint8Array(3), options);
    await expect(put).rejects.toMatchObject({ code: 'STORAGE_DOWN' });
  });
});
