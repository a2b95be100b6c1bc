import { BufferTarget, Mp4OutputFormat, Output } from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { parseParameters } from '../contract';
import { inspectVideo } from './inspect';
import { createVideoMetadata, readVideoMetadata, type VideoMetadata } from './metadata';
import { createRgbaWriter } from './testing/i420';
import { WebCodecsEncoder } from './webcodecs-encoder';

const full = createVideoMetadata({
  id: '0123456789abcdef0123456789abcdef',
  model: 'wan2.2-ti2v-5b',
  profile: 'ultra-fast',
  backend: 'wasm',
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
});

async function writeVideo(metadata: VideoMetadata, late?: VideoMetadata): Promise<Blob> {
  const options = { width: 32, height: 32, frames: 1, frameRate: 24, metadata };
  const writer = await createRgbaWriter(options);
  await writer.add(new Uint8ClampedArray(32 * 32 * 4));
  return writer.finish(1, late);
}

let video: Blob;
beforeAll(async () => {
  video = await writeVideo(full);
});

test('every field comes back, whatever is written in the prompt', async () => {
  expect(await readVideoMetadata(video)).toEqual(full);
  // What comes back is a request as it stands.
  expect(parseParameters(await readVideoMetadata(video))).toEqual(
    parseParameters({ ...full, app: undefined }),
  );
});

test('what else is known is stored as well: the check, both prompts, the licence, images and hashes', async () => {
  const late = createVideoMetadata({
    id: full.id,
    model: full.model,
    profile: full.profile,
    backend: full.backend,
    createdAt: full.created_at,
    parameters: parseParameters({ prompt: 'a boat', seed: 7 }),
    startImage: btoa('jpeg'),
    lastFraming: { zoom: 2, x: 0, y: 1, background: 'blur' },
    lastImage: btoa('last jpeg'),
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
  });
  const read = await readVideoMetadata(await writeVideo(full, late));
  expect(read).toEqual(late);
  expect(read).toMatchObject({
    prompt: 'a boat',
    last_image: btoa('last jpeg'),
    last_framing: { zoom: 2 },
    prompt_optimization: { text: 'A boat sails on.' },
    safety: { status: 'flagged' },
  });
});

test('a prompt of 5,000 characters comes back', async () => {
  const prompt = 'Ein langer Satz über 🦊 und "Schnee".\n'.repeat(150).slice(0, 5000);
  expect((await readVideoMetadata(await writeVideo({ ...full, prompt }))).prompt).toBe(prompt);
});

test('the head of a file is enough: the metadata stands before the frames', async () => {
  const head = new DataView(await video.slice(0, 64).arrayBuffer());
  const moov = head.getUint32(0); // after the first box, `ftyp`
  const end = moov + head.getUint32(moov);
  expect(end).toBeLessThan(video.size);
  expect(await readVideoMetadata(video.slice(0, end))).toEqual(full);
});

const unreadable = { code: 'VIDEO_UNREADABLE' };

test('anything else is refused', async () => {
  const bytes = new Uint8Array(await video.arrayBuffer());
  const text = new TextDecoder('latin1').decode(bytes);
  bytes[text.indexOf('"seed":') + 1] = 0x78; // "xeed"
  for (const part of [bytes, '', 'x'.repeat(999), video.slice(0, 200)]) {
    await expect(readVideoMetadata(new Blob([part]))).rejects.toMatchObject(unreadable);
  }
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
