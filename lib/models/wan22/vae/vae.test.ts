import { expect, test } from 'vitest';
import { relativeRms } from '../../../gpu';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { nodeBackend } from '../testing/model';
import { createVaeDecoder, encodeFirstFrame } from '.';
import { clipOf, collect, openGoldens } from './testing';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = nodeBackend();

test('bands of unequal height change nothing', async () => {
  const { config, checkpoint, size, latentFrame } = goldens;
  const { latentWidth } = size;
  const latentHeight = 3;
  const rows = latentHeight * latentWidth;
  // The first three rows of each channel.
  const cropped = (f: number) => {
    const whole = latentFrame(f);
    const plane = size.latentHeight * latentWidth;
    return whole.filter((_, i) => i % plane < rows);
  };
  const clips: Float32Array[] = [];
  for (const bandBytes of [2 ** 24, 1500]) {
    const options = { latentHeight, latentWidth, bandBytes };
    const decoder = await createVaeDecoder(backend, config, checkpoint, options);
    const frames: Float32Array[] = [];
    for (const f of [0, 1]) frames.push(...(await collect(decoder.decode(cropped(f)))));
    clips.push(clipOf(frames));
    decoder.dispose();
  }
  const [whole, banded] = clips;
  expect(relativeRms(banded ?? [], whole ?? [])).toBeLessThan(1e-5);
});

test('a half-decoded frame is given up', async () => {
  const { config, checkpoint, size, latentFrame } = goldens;
  const decoder = await createVaeDecoder(backend, config, checkpoint, size);
  const first = await collect(decoder.decode(latentFrame(0)));
  await decoder.decode(latentFrame(1)).next();
  await expect(decoder.decode(latentFrame(2)).next()).rejects.toThrow('not decoded to its end');
  decoder.reset();
  expect(await collect(decoder.decode(latentFrame(0)))).toEqual(first);
  await decoder.decode(latentFrame(1)).next();
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
