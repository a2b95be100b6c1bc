import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeVideo } from '../../testing/video';
import { checkVideo } from './video';

const asked = { size: '1280*720', duration: 5 } as const;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'kinora-check-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function check(bytes: Uint8Array, wanted: Parameters<typeof checkVideo>[1] = asked) {
  const file = path.join(folder, 'video.mp4');
  await writeFile(file, bytes);
  return await checkVideo(file, wanted);
}

/** Where a box's four letters stand. */
function find(bytes: Uint8Array, type: string): number {
  const at = Buffer.from(bytes).indexOf(type);
  if (at < 0) throw new Error(`There is no ${type}.`);
  return at;
}

/** The video with one number of its index changed. */
async function changed(type: string, offset: number, change: (value: number) => number) {
  const bytes = await makeVideo();
  const view = new DataView(bytes.buffer);
  const at = find(bytes, type) + offset;
  view.setUint32(at, change(view.getUint32(at)));
  return bytes;
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
}

function repeated(value: number, times: number): Buffer {
  return Buffer.alloc(4 * times, numbers(value));
}

function box(type: string, ...content: readonly Buffer[]): Buffer {
  const inside = Buffer.concat(content);
  return Buffer.concat([numbers(inside.length + 8), Buffer.from(type), inside]);
}

/** A file with nothing but an index, of one byte for each sample. */
function indexOf({ samples, chunks }: { samples: number; chunks: number }): Buffer {
  const entry = Buffer.concat([numbers(0, 1, 16), Buffer.from('avc1'), Buffer.alloc(8)]);
  const table = box(
    'stbl',
    box('stsd', entry),
    box('stsz', numbers(0, 0, samples), repeated(1, samples)),
    box('stco', numbers(0, chunks), repeated(0, chunks)),
    box('stsc', numbers(0, 1, 1, 1, 1)),
  );
  const handler = box('hdlr', Buffer.alloc(8), Buffer.from('vide'), Buffer.alloc(12));
  const moov = box('moov', box('trak', box('mdia', handler, box('minf', table))));
  return Buffer.concat([moov, box('mdat', Buffer.alloc(8))]);
}

describe('checkVideo', () => {
  it('takes the video that was asked for, in both sizes and lengths', async () => {
    expect(await check(await makeVideo())).toMatchObject({ width: 1280, height: 720, frames: 121 });
    const slower = await makeVideo({ frames: 81, fps: 16 });
    expect(await check(slower)).toMatchObject({ frames: 81, frameRate: 16 });
    const tall = await makeVideo({ width: 720, height: 1280, frames: 241 });
    expect(await check(tall, { size: '720*1280', duration: 10 })).toMatchObject({ frames: 241 });
  });

  it.each([
    ['another size', { width: 720, height: 1280 }, /720×1280 and not 1280×720/],
    ['too few frames', { frames: 60 }, /lasts 2\.5 s and not 5\.04 s/],
    ['too many frames', { frames: 241 }, /lasts 10\.04/],
    ['more frames than a model makes', { frames: 332, fps: 66 }, /332 frames, more/],
    ['another frame rate', { fps: 12 }, /lasts 10\.08/],
    ['a second track', { tracks: 2 as const }, /2 tracks/],
  ])('refuses %s', async (_, options, sentence) => {
    const thrown = check(await makeVideo(options));
    await expect(thrown).rejects.toMatchObject({ code: 'OUTPUT_REJECTED' });
    await expect(thrown).rejects.toThrow(sentence);
  });

  it('refuses a file that was cut anywhere', async () => {
    const whole = await makeVideo();
    for (const part of [0, 0.01, 0.3, 0.6, 0.99]) {
      const cut = whole.subarray(0, Math.floor(whole.length * part));
      await expect(check(cut)).rejects.toMatchObject({ code: 'OUTPUT_REJECTED' });
    }
  });

  it('refuses samples outside of the file, which reading the index alone would accept', async () => {
    // Box contents: version, count, then rows (ISO/IEC 14496-12, 8.7).
    await expect(check(await changed('stco', 12, () => 0x7fff_0000))).rejects.toThrow(/outside/);
    await expect(check(await changed('stco', 12, () => 8))).rejects.toThrow(/outside/);
    await expect(check(await changed('stsz', 16, (size) => size + 100_000))).rejects.toThrow(
      /outside/,
    );
    await expect(check(await changed('stsz', 12, (count) => count - 1))).rejects.toThrow(
      /not there|does not place/,
    );
    await expect(check(await changed('stsz', 12, () => 0xffff_fff0))).rejects.toThrow(/damaged/);
  });

  it('walks no index that is longer than the video that was asked for', async () => {
    const long = indexOf({ samples: 332, chunks: 332 });
    await expect(check(long)).rejects.toThrow(/332 frames, more than were asked for/);
    await expect(check(indexOf({ samples: 331, chunks: 332 }))).rejects.toThrow(/332 frames, more/);
    await expect(check(indexOf({ samples: 400_000, chunks: 1 }))).rejects.toThrow(/too large/);
    const parts = Buffer.concat(Array.from({ length: 20 }, () => box('free')));
    await expect(check(Buffer.concat([await makeVideo(), parts]))).rejects.toThrow(
      /too many parts/,
    );
  });

  it('refuses tags, which a link would send to everybody', async () => {
    const bytes = await makeVideo({ tags: { comment: '{"prompt":"A boat"}' } });
    await expect(check(bytes)).rejects.toThrow(/it has tags/);
  });

  it('refuses another codec and what is no video at all', async () => {
    const bytes = await makeVideo();
    bytes.set(Buffer.from('vp09'), find(bytes, 'avc1'));
    // The first `avc1` is a brand of the file, the second the sample entry.
    bytes.set(Buffer.from('vp09'), find(bytes, 'avc1'));
    await expect(check(bytes)).rejects.toThrow(/codec is "vp09"/);
    await expect(check(Buffer.from('<html>'.repeat(1000)))).rejects.toMatchObject({
      code: 'OUTPUT_REJECTED',
    });
  });
});
