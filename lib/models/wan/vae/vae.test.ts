import { expect, test } from 'vitest';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { nodeBackend } from '../testing/model';
import { createVaeDecoder, encodeFirstFrame } from './';
import { collect, latentsOf, openGoldens } from './testing/goldens';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = nodeBackend();

test('a half-decoded clip is given up', async () => {
  const { config, checkpoint, size } = goldens;
  const decoder = await createVaeDecoder(backend, config, checkpoint, size);
  const latents = latentsOf(goldens).slice(0, 2);
  const frames = await collect(decoder.decodeClip(latents));
  const half = decoder.decodeClip(latents);
  for (let f = 0; f < 3; f++) await half.next();
  expect(await collect(decoder.decodeClip(latents))).toEqual(frames);
  const last = decoder.decodeClip(latents);
  for (let f = 0; f < 2; f++) await last.next();
  decoder.dispose();
  expect(backend.counters().liveBytes).toBe(0);
});

test('an image of a wrong size is refused', async () => {
  const { config, checkpoint, image } = goldens;
  const narrow = { ...image, width: image.width - 1 };
  await expect(encodeFirstFrame(backend, config, checkpoint, narrow)).rejects.toThrow(
    'not an image in steps of 16 pixels: 95×64',
  );
});
