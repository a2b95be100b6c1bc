import { expect, test } from 'vitest';
import { centred, parseParameters } from '../../../lib/contract';
import { sharedRequestOf } from '../../../lib/contract/v3';
import {
  type FinishedVideo,
  toMetadataTags,
  toSharedTags,
  withTags,
} from '../../../lib/video/metadata';
import { createRgbaWriter } from '../../../lib/video/testing/i420';
import { readImage, readLastFrame, readSettings } from './files';

const parameters = parseParameters({
  prompt: 'a boat',
  negative_prompt: 'rain',
  size: '720*1280',
  num_inference_steps: 8,
  duration: 6,
  guidance_scale: 2.5,
  seed: 1234567890,
  loras: [{ path: 'style.safetensors', scale: 0.5 }],
});

const row: FinishedVideo = {
  id: 'ab'.repeat(16),
  model: 'tiny',
  profile: 'ultra-fast',
  parameters,
  options: {},
  createdAt: '2025-01-01T00:00:00.000Z',
  result: { backend: 'wasm', frames: 12, frameRate: 24 },
};

/** A real MP4: 12 frames from black to red. */
async function makeVideo(): Promise<Blob> {
  const [width, height, frames] = [64, 48, 12];
  const writer = await createRgbaWriter({ width, height, frameRate: 24, frames });
  const frame = new Uint8ClampedArray(width * height * 4);
  for (let index = 0; index < frames; index++) {
    for (let at = 0; at < frame.length; at += 4) {
      frame.set([Math.round((255 * index) / (frames - 1)), 0, 0, 255], at);
    }
    await writer.add(frame);
  }
  return writer.finish();
}

async function firstPixel(image: Blob): Promise<{ width: number; height: number; red: number }> {
  const { width, height } = await createImageBitmap(image);
  const context = new OffscreenCanvas(1, 1).getContext('2d');
  if (!context) throw new Error('no canvas');
  context.drawImage(await createImageBitmap(image), 0, 0);
  return { width, height, red: context.getImageData(0, 0, 1, 1).data[0] ?? 0 };
}

test('the last frame is the last one, as a PNG of the same size', async () => {
  const image = await readLastFrame(await makeVideo());
  expect(image.type).toBe('image/png');
  const { width, height, red } = await firstPixel(image);
  expect([width, height]).toEqual([64, 48]);
  // The previous frame has 232; H.264 changes the value by a few levels.
  expect(red).toBeGreaterThan(244);
});

test('a copy that was shared fills in what it tells, and nothing else', async () => {
  const video = await makeVideo();
  const of = async (include: { prompt: boolean; settings: boolean }) => {
    const request = sharedRequestOf(row, { ...include, image: false });
    return (await readSettings(await withTags(video, toSharedTags(request, {}, null)))).values;
  };
  expect(await of({ prompt: true, settings: false })).toEqual({
    prompt: 'a boat',
    negative_prompt: 'rain',
  });
  expect(await of({ prompt: false, settings: true })).toMatchObject({
    seed: '1234567890',
    num_inference_steps: '8',
    profile: 'ultra-fast',
    size: '720*1280',
  });
  // What is stored tells nothing.
  await expect(readSettings(video)).rejects.toMatchObject({ code: 'VIDEO_UNREADABLE' });
});

test('a file that holds its images and what tells its LoRAs gives them back; its shared copy has neither', async () => {
  const file = { sha256: 'c0ffee00'.repeat(8), source: 'owner/name/style.safetensors' };
  const framing = { ...centred, zoom: 2 };
  const made = {
    ...row,
    parameters: { ...parameters, last_image_at: 2.5 },
    options: { lastImage: { name: 'end.png', framing } },
    result: { ...row.result, loraFiles: [file] },
  };
  const images = { start_image: btoa('the bytes of a JPEG'), last_image: btoa('the end') };
  const video = await withTags(await makeVideo(), toMetadataTags(made, images));
  const { values, image, lastImage, loras } = await readSettings(video);
  expect(values).toMatchObject({ last_image_at: '2.5' });
  expect(image?.type).toBe('image/jpeg');
  expect(await image?.text()).toBe('the bytes of a JPEG');
  expect(lastImage?.framing).toEqual(framing);
  expect(await lastImage?.file?.text()).toBe('the end');
  expect(loras).toEqual([{ path: 'style.safetensors', scale: 0.5, ...file }]);

  const request = sharedRequestOf(made, { prompt: true, settings: true, image: true });
  const shared = (held: typeof images | null) =>
    withTags(video, toSharedTags(request, made.options, held));
  const text = await (await shared(null)).text();
  expect(text).toContain('a boat');
  for (const secret of [...Object.values(images), file.sha256, file.source])
    expect(text).not.toContain(secret);
  const withImage = await readSettings(await shared(images));
  expect(await withImage.image?.text()).toBe('the bytes of a JPEG');
  expect(await withImage.lastImage?.file?.text()).toBe('the end');
});

test('a file that cannot be played has no last frame', async () => {
  await expect(readLastFrame(new Blob(['no video']))).rejects.toMatchObject({
    code: 'VIDEO_UNREADABLE',
  });
});

test('a video of Kinora restores the form, its profile included, and names its LoRAs', async () => {
  const video = await withTags(await makeVideo(), toMetadataTags(row));
  expect(await readSettings(video)).toEqual({
    values: {
      prompt: 'a boat',
      optimization: null,
      negative_prompt: 'rain',
      size: '720*1280',
      sizeChosen: true,
      num_inference_steps: '8',
      duration: '6',
      last_image_at: '',
      guidance_scale: '2.5',
      flow_shift: '5',
      // Numbers of a video stay with every model.
      samplingDefaults: null,
      seed: '1234567890',
      model: 'tiny',
      profile: 'ultra-fast',
      adapterStrength: 1,
      backend: 'wasm',
    },
    loras: [{ path: 'style.safetensors', scale: 0.5 }],
    lastImage: null,
    metadata: expect.objectContaining({ seed: 1_234_567_890 }),
  });
  await expect(readSettings(new Blob(['no video']))).rejects.toMatchObject({
    code: 'VIDEO_UNREADABLE',
  });
});

test('an image is read by its bytes and not by its name', async () => {
  const canvas = new OffscreenCanvas(40, 30);
  canvas.getContext('2d')?.fillRect(0, 0, 40, 30);
  const png = await canvas.convertToBlob({ type: 'image/png' });
  const misnamed = new File([png], 'photo.jpg', { type: 'image/jpeg' });
  const { name, file } = await readImage(misnamed, misnamed.name);
  expect([name, file.type, file.size]).toEqual(['photo.jpg', 'image/png', png.size]);

  await expect(readImage(new Blob(['text']), 'x')).rejects.toMatchObject({
    code: 'IMAGE_UNREADABLE',
  });
});
