import { BlobSource, EncodedPacketSink, Input, MP4 } from 'mediabunny';
import { describe, expect, test } from 'vitest';
import { makeVideo } from '../../relay/testing/video';
import { parseParameters } from '../contract';
import { centred } from '../contract/framing';
import { sharedRequestOf } from '../contract/v3/share';
import { inspectVideo } from './inspect';
import { createVideoMetadata, readSharedTags, toMetadataTags } from './metadata';
import { publicCopy } from './public-copy';

const secrets = {
  prompt: 'A lantern over Hällefors',
  negative: 'no-umbrellas-please',
  seed: 4_242_424_242,
  id: 'c0ffee'.repeat(5),
  lora: 'someone/private-style/weights.safetensors',
};
const parameters = parseParameters({
  prompt: secrets.prompt,
  negative_prompt: secrets.negative,
  seed: secrets.seed,
  loras: [{ path: secrets.lora, scale: 1 }],
});
const tags = toMetadataTags(
  createVideoMetadata({
    id: secrets.id,
    model: 'mini',
    profile: 'standard',
    backend: 'wasm',
    parameters,
    createdAt: '2026-01-01T00:00:00.000Z',
  }),
  24,
);
const made = { parameters, profile: 'standard' } as const;
const nothing = { prompt: false, settings: false, image: false };

function box(type: string, ...content: readonly Uint8Array[]): Buffer {
  const inside = Buffer.concat(content);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(inside.length + 8);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, inside]);
}

/** A real video that has the request in its tags, and in every other place where text can be. */
async function videoWithSecrets(): Promise<Blob> {
  const text = Buffer.from(`hidden ${JSON.stringify(secrets)} hidden`);
  const bytes = Buffer.from(await makeVideo({ tags, fastStart: false }));
  // The index is the last box: it may grow without a change of any offset.
  const at = bytes.indexOf('moov') - 4;
  const index = bytes.subarray(at + 8);
  const track = index.subarray(index.indexOf('trak') - 4);
  const trackBytes = track.readUInt32BE(0);
  const before = index.subarray(0, index.length - track.length);
  const inside = ['udta', 'meta', 'free', 'skip', 'uuid'].map((type) => box(type, text));
  const newTrack = box('trak', track.subarray(8, trackBytes), ...inside);
  const compressor = newTrack.indexOf('avc1') + 4 + 42;
  text.copy(newTrack, compressor, 7, 7 + 31);
  const newIndex = box('moov', before, newTrack, track.subarray(trackBytes), ...inside.slice(2));
  const around = ['free', 'skip', 'uuid', 'mdat'].map((type) => box(type, text));
  return new Blob([Uint8Array.from(Buffer.concat([bytes.subarray(0, at), newIndex, ...around]))]);
}

async function bytesOf(file: Blob): Promise<Buffer> {
  return Buffer.from(await file.arrayBuffer());
}

async function packetsOf(file: Blob): Promise<{ at: number; type: string; data: string }[]> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  if (!track) throw new Error('no track');
  const packets = [];
  for await (const { timestamp, type, data } of new EncodedPacketSink(track).packets()) {
    packets.push({ at: timestamp, type, data: Buffer.from(data).toString('base64') });
  }
  return packets;
}

describe.each([
  ['a video as it is made', async () => new Blob([await makeVideo({ tags })])],
  ['a video with text in all its boxes', videoWithSecrets],
])('%s', (_, makeFile) => {
  test('tells in its copy what is shown, and has the same frames', async () => {
    const file = await makeFile();
    const original = await bytesOf(file);
    for (const secret of Object.values(secrets)) expect(original.includes(`${secret}`)).toBe(true);

    const shown = {
      none: [],
      prompt: ['prompt', 'negative'],
      settings: ['seed'],
      both: ['prompt', 'negative', 'seed'],
    } as const;
    for (const [name, expected] of Object.entries(shown)) {
      const include = {
        ...nothing,
        prompt: name === 'prompt' || name === 'both',
        settings: name === 'settings' || name === 'both',
      };
      const copy = await publicCopy(file, sharedRequestOf(made, include));
      const bytes = await bytesOf(copy);
      const found = Object.entries(secrets).filter(([, text]) => bytes.includes(`${text}`));
      expect(found.map(([key]) => key)).toEqual(expected);
      expect(bytes.includes('hidden')).toBe(false);
      const facts = await inspectVideo(copy);
      expect(facts).toEqual({ ...(await inspectVideo(file)), fastStart: true });
      expect(await packetsOf(copy)).toEqual(await packetsOf(file));
      const again = await publicCopy(file, sharedRequestOf(made, include));
      expect((await bytesOf(again)).equals(bytes)).toBe(true);
    }
  });
});

test('players and the studio read the tags of a copy', async () => {
  const file = new Blob([await makeVideo({ tags })]);
  const request = sharedRequestOf(made, { prompt: true, settings: true, image: true });
  const copy = await publicCopy(file, request);
  const input = new Input({ source: new BlobSource(copy), formats: [MP4] });
  const { title, description } = await input.getMetadataTags();
  expect(title).toBe(secrets.prompt);
  expect(description).toBe('standard, seed 4242424242, 30 steps, 1280*720, 5 s');
  const shared = { app: 'kinora', shared: { ...request, image: false } };
  expect(await readSharedTags(copy)).toEqual(shared);
  const end = { last_image: btoa('another JPEG'), last_framing: { ...centred, zoom: 2 } };
  const image = { start_image: btoa('a JPEG'), framing: centred, ...end };
  expect(await readSharedTags(await publicCopy(file, request, image))).toEqual({
    ...shared,
    ...image,
  });
  expect(await readSharedTags(file)).toBeNull();
  expect(await readSharedTags(await publicCopy(file, sharedRequestOf(made, nothing)))).toBeNull();
});

test('a file that is no whole video is refused', async () => {
  const bytes = await makeVideo();
  const cut = new Blob([bytes.subarray(0, bytes.length - 1)]);
  await expect(publicCopy(cut, sharedRequestOf(made, nothing))).rejects.toMatchObject({
    code: 'VIDEO_UNREADABLE',
  });
});
