import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { relativeRms, type Runtime, WasmBackend } from '../../gpu';
import { diskFolder, goldens as root } from '../../weights/testing/files';
import { createVaeDecoder, encodeFirstFrame } from '.';
import { clipOf, decodeAll, openGoldens } from './testing';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = new WasmBackend(ort as unknown as Runtime);

test.each([undefined, 4096])('first-frame latent, bands of %s bytes', async (bandBytes) => {
  const { config, checkpoint, image, tensors } = goldens;
  const options = bandBytes === undefined ? {} : { bandBytes };
  const latent = await encodeFirstFrame(backend, config, checkpoint, image, options);
  const error = relativeRms(latent, await tensors.read('image_latent'));
  console.log('image latent', error);
  expect(error).toBeLessThan(1e-5);
});

test.each([undefined, 4096])('video, bands of %s bytes', async (bandBytes) => {
  const { config, checkpoint, size, tensors } = goldens;
  const options = { ...size, ...(bandBytes !== undefined && { bandBytes }) };
  const decoder = await createVaeDecoder(backend, config, checkpoint, options);
  const frames = await decodeAll(decoder, goldens);
  const error = relativeRms(clipOf(frames), await tensors.read('video'));
  console.log('video', error, frames.length);
  expect(error).toBeLessThan(1e-5);
  decoder.dispose();
});
