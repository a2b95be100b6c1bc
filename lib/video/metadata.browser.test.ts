import { BlobSource, BufferTarget, Input, MP4, Mp4OutputFormat, Output } from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { parseParameters } from '../contract';
import { sharedRequestOf } from '../contract/v3';
import { inspectVideo } from './inspect';
import {
  createVideoMetadata,
  type FinishedVideo,
  readSharedTags,
  readVideoMetadata,
  toMetadataTags,
  toSharedTags,
  withTags,
} from './metadata';
import { createRgbaWriter } from './testing/i420';
import { packetsOf } from './testing/packets';
import { WebCodecsEncoder } from './webcodecs-encoder';

const row: FinishedVideo = {
  id: '0123456789abcdef0123456789abcdef',
  model: 'wan2.2-ti2v-5b',
  profile: 'ultra-fast',
  createdAt: '2026-01-02T03:04:05.678Z',
  parameters: parseParameters({
    prompt:
      'Ein Fuchs läuft — "schnell" \\ 狐は走る 🦊👩‍👩‍👧 \u0007\n\n\tЛиса </script> \u2028 end',
    negative_prompt: '低质量, "blurry"',
    loras: [
      { path: 'https://example.com/ä b.safetensors', scale: 0.8 },
      { path: 'b.safetensors', scale: 4 },
    ],
    size: '720*1280',
    num_inference_steps: 40,
    duration: 10,
    guidance_scale: 3.7,
    flow_shift: 1,
    seed: 9_999_999_999,
  }),
  options: {},
  result: { backend: 'wasm', frames: 241, frameRate: 24 },
};
const full = createVideoMetadata(row);

async function makeBare(): Promise<Blob> {
  const writer = await createRgbaWriter({ width: 32, height: 32, frames: 1, frameRate: 24 });
  await writer.add(new Uint8ClampedArray(32 * 32 * 4));
  return writer.finish();
}

let bare: Blob;
let video: Blob;
beforeAll(async () => {
  bare = await makeBare();
  video = await withTags(bare, toMetadataTags(row));
});

test('a file as it is written has no tags; a copy with tags has the same packets', async () => {
  await expect(readVideoMetadata(bare)).rejects.toMatchObject(unreadable);
  const text = new TextDecoder('latin1').decode(await bare.arrayBuffer());
  expect(text).not.toMatch(/udta|ilst|kinora|prompt|seed/i);
  expect(await packetsOf(video)).toEqual(await packetsOf(bare));
  expect(await inspectVideo(video)).toEqual(await inspectVideo(bare));
  // Copied once more, it has only the new tags.
  const shared = await withTags(video, toSharedTags({ parameters: {}, image: false }, {}, null));
  expect(await shared.text()).not.toContain(row.model);
});

test('every field comes back, whatever is written in the prompt', async () => {
  expect(await readVideoMetadata(video)).toEqual(full);
  // What comes back is a request as it stands.
  expect(parseParameters(await readVideoMetadata(video))).toEqual(
    parseParameters({ ...full, app: undefined }),
  );
});

test('what else is known is stored as well: the check, both prompts, the licence, images and hashes', async () => {
  const late: FinishedVideo = {
    ...row,
    parameters: parseParameters({ prompt: 'a boat', seed: 7 }),
    options: {
      lastImage: { name: 'end.png', framing: { zoom: 2, x: 0, y: 1, background: 'blur' } },
    },
    parts: [{ id: 'a', prompt: 'a boat', seed: 7, from: 3, to: 9 }],
    result: {
      ...row.result,
      loraFiles: [{ sha256: 'b'.repeat(64), source: 'owner/name/style.safetensors' }],
      licence: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
      safety: {
        status: 'flagged',
        reason: null,
        score: 0.75,
        input: 0.1,
        frames: [0.5, 1],
        threshold: 0.5,
        model: 'owner/checker',
        sha256: 'a'.repeat(64),
      },
      promptOptimization: {
        status: 'used',
        original: 'a boat',
        text: 'A boat sails on.',
        reasons: [],
        model: 'tiny',
        sha256: null,
        seed: 7,
        milliseconds: 12,
      },
    },
  };
  const images = { start_image: btoa('jpeg'), last_image: btoa('last jpeg') };
  const read = await readVideoMetadata(await withTags(video, toMetadataTags(late, images)));
  expect(read).toEqual(createVideoMetadata(late, images));
  expect(read).toMatchObject({
    prompt: 'a boat',
    start_image: btoa('jpeg'),
    last_image: btoa('last jpeg'),
    last_framing: { zoom: 2 },
    prompt_optimization: { text: 'A boat sails on.' },
    safety: { status: 'flagged' },
  });
});

test('a prompt of 5,000 characters comes back', async () => {
  const prompt = 'Ein langer Satz über 🦊 und "Schnee".\n'.repeat(150).slice(0, 5000);
  const long = { ...row, parameters: { ...row.parameters, prompt } };
  const made = await withTags(bare, toMetadataTags(long));
  expect((await readVideoMetadata(made)).prompt).toBe(prompt);
});

test('the head of a file is enough: the metadata stands before the frames', async () => {
  const head = new DataView(await video.slice(0, 64).arrayBuffer());
  const moov = head.getUint32(0); // after the first box, `ftyp`
  const end = moov + head.getUint32(moov);
  expect(end).toBeLessThan(video.size);
  expect(await readVideoMetadata(video.slice(0, end))).toEqual(full);
});

test('a shared file tells what is shown, to players and to the studio', async () => {
  const request = sharedRequestOf(row, { prompt: true, settings: true, image: true });
  const options = { framing: { zoom: 2, x: 0, y: 1, background: 'blur' } } as const;
  const shared = { app: 'kinora', shared: { ...request, image: false } };
  const copy = await withTags(bare, toSharedTags(request, options, null));
  expect(await readSharedTags(copy)).toEqual(shared);
  const input = new Input({ source: new BlobSource(copy), formats: [MP4] });
  const { title, description } = await input.getMetadataTags();
  input.dispose();
  expect(title).toMatch(/^Ein Fuchs läuft/);
  expect(description).toBe('ultra-fast, seed 9999999999, 40 steps, 720*1280, 10 s');
  const images = { start_image: btoa('jpeg') };
  const withImage = await withTags(bare, toSharedTags(request, options, images));
  expect(await readSharedTags(withImage)).toEqual({ ...shared, ...images, ...options });
  expect(await readSharedTags(video)).toBeNull();

  const nothing = { prompt: false, settings: false, image: false };
  const secrets = { prompt: ['Fuchs', 'blurry'], settings: ['9999999999', '40 steps'] };
  for (const name of ['prompt', 'settings'] as const) {
    const part = sharedRequestOf(row, { ...nothing, [name]: true });
    const text = await (await withTags(video, toSharedTags(part, options, null))).text();
    const told = [...secrets.prompt, ...secrets.settings].filter((one) => text.includes(one));
    expect(told).toEqual(secrets[name]);
  }
});

const unreadable = { code: 'VIDEO_UNREADABLE' };

test('anything else is refused', async () => {
  const bytes = new Uint8Array(await video.arrayBuffer());
  const text = new TextDecoder('latin1').decode(bytes);
  bytes[text.indexOf('"seed":') + 1] = 0x78; // "xeed"
  for (const part of [bytes, '', 'x'.repeat(999), video.slice(0, 200)]) {
    await expect(readVideoMetadata(new Blob([part]))).rejects.toMatchObject(unreadable);
  }
  const cut = video.slice(0, 200);
  await expect(withTags(cut, toMetadataTags(row))).rejects.toMatchObject(unreadable);
});

test('an MP4 of someone else is refused as ours, but can be inspected', async () => {
  const encoder = new WebCodecsEncoder({ width: 64, height: 48, frameRate: 24 });
  const output = new Output({
    format: new Mp4OutputFormat({ fastStart: false }),
    target: new BufferTarget(),
  });
  output.addVideoTrack(encoder.source);
  output.setMetadataTags({ comment: '{"prompt":"not ours"}' });
  await output.start();
  for (let i = 0; i < 3; i++) await encoder.add(new Uint8Array(64 * 72));
  await output.finalize();
  const foreign = new Blob([output.target.buffer ?? '']);
  await expect(readVideoMetadata(foreign)).rejects.toMatchObject(unreadable);
  expect(await inspectVideo(foreign)).toMatchObject({
    width: 64,
    height: 48,
    frames: 3,
    frameRate: 24,
    fastStart: false,
  });
});

test('a cut or foreign file cannot be inspected', async () => {
  for (const part of [video.slice(0, video.size - 1), 'x'.repeat(999), '']) {
    await expect(inspectVideo(new Blob([part]))).rejects.toMatchObject(unreadable);
  }
});
