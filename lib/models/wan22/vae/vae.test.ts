import { expect, test } from 'vitest';
import { diskFolder, goldens as root } from '../../../weights/testing/files';
import { nodeBackend } from '../testing/model';
import { createVaeDecoder, encodeFirstFrame } from '.';
import { collect, openGoldens } from './testing';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = nodeBackend();

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
