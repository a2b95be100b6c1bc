import * as ort from 'onnxruntime-web';
import { expect, test } from 'vitest';
import { relativeRms, type Runtime, WasmBackend } from '../gpu';
import { openGolden, diskFolder, goldens as root } from '../weights/testing/files';
import { createTinyDecoder } from './tiny-decoder';
import { decodeAll, openGoldens } from './vae/testing';

const goldens = await openGoldens(diskFolder(root), diskFolder(`${root}model`));
const backend = new WasmBackend(ort as unknown as Runtime);

test.each(['base', 'super'])('the %s decoder gives the golden frames', async (variant) => {
  const checkpoint = await openGolden(`formats/tiny-decoder-${variant}.safetensors`);
  const expected = await openGolden(`formats/tiny-decoder-${variant}-golden.safetensors`);
  const decoder = await createTinyDecoder(backend, checkpoint, goldens.size);
  const frames = await decodeAll(decoder, goldens);
  const golden = await expected.read('frames');
  const actual = new Float32Array(golden.length);
  frames.forEach((frame, t) => actual.set(frame, t * frame.length));
  const error = relativeRms(actual, golden);
  console.log(variant, frames.length, error);
  expect(error).toBeLessThan(1e-5);
  decoder.dispose();
});
