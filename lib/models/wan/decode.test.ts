import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { relativeRms } from '../../gpu';
import { longestClip } from '../../pipeline/memory/memory-plan';
import { openTensorFile } from '../../weights';
import {
  diskFile,
  diskFolder,
  goldens,
  openGolden,
  patchedFolder,
} from '../../weights/testing/files';
import { WanModel } from './model';
import { nodeBackend, openTiny, tinyFolder } from './testing/model';
import { makeVideo, smoothImage } from './testing/video';
import { clipOf, collect, openGoldens } from './vae/testing/goldens';
import { openComponent } from './wan-naming';

const backend = nodeBackend();
// The plans count the runtime's tensors.
backend.runtimeOnly = true;
const golden = await openGoldens(diskFolder(goldens), tinyFolder);
const { latentHeight: height, latentWidth: width } = golden.size;
const clip = {
  size: { frames: golden.frames, height, width },
  latents: await golden.tensors.read('final_latents'),
  tiles: 'full',
  signal: new AbortController().signal,
  onTile: () => undefined,
} as const;
const tinyFile = new Uint8Array(await readFile(`${goldens}formats/tiny-decoder-base.safetensors`));

function openWith(file: Uint8Array<ArrayBuffer>) {
  const path = 'tiny_decoder/diffusion_pytorch_model.safetensors';
  return openTiny({}, patchedFolder(tinyFolder, { [path]: file }));
}

let model: WanModel;
beforeAll(async () => {
  model = new WanModel(await openWith(tinyFile));
});
afterAll(() => backend.dispose());
afterEach(() => expect(backend.counters().liveBytes).toBe(0));

test('the tiny decoder gives its golden frames, in −1…1, within its plan', async () => {
  expect(model.decoders).toEqual(['full', 'tiny']);
  const native = longestClip(model.manifest, '1280*720', 9);
  const request = { native: { ...native, height: height * 16, width: width * 16 }, backend };
  const { full } = await model.planMemory({ ...request, decoder: 'tiny' });
  const planned = full.stages.find(({ stage }) => stage === 'decode');
  backend.resetPeaks();
  const frames = await collect(model.decode(backend, { ...clip, decoder: 'tiny' }));
  expect(planned?.weights).toBe(backend.counters().categories.weights?.peak);
  expect(planned?.activations).toBe(backend.counters().categories.activations?.peak);
  await backend.releaseSessions();
  const file = await openGolden('formats/tiny-decoder-base-golden.safetensors');
  const expected = (await file.read('frames')).map((value) => 2 * value - 1); // [1, T, 3, H, W]
  expect(
    relativeRms(Float32Array.from(frames.flatMap((frame) => [...frame])), expected),
  ).toBeLessThan(1e-4);
});

test('a light decoder of half the width gives the frames of diffusers, within its plan', async () => {
  const parts = await openTiny();
  const file = await openTensorFile(await diskFile(`${goldens}formats/light-decoder.pth`));
  const lightDecoder = openComponent('light_decoder', [file], parts.config);
  const light = new WanModel({ ...parts, lightDecoder });
  expect(light.decoders).toEqual(['full', 'light']);
  const native = longestClip(light.manifest, '1280*720', 9);
  const request = { native: { ...native, height: height * 16, width: width * 16 }, backend };
  const { full } = await light.planMemory({ ...request, decoder: 'light' });
  const planned = full.stages.find(({ stage }) => stage === 'decode');
  backend.resetPeaks();
  const frames = await collect(light.decode(backend, { ...clip, decoder: 'light' }));
  expect(planned?.weights).toBe(backend.counters().categories.weights?.peak);
  expect(planned?.activations).toBe(backend.counters().categories.activations?.peak);
  await backend.releaseSessions();
  const expected = await (await openGolden('formats/light-decoder-golden.safetensors')).read(
    'video',
  );
  expect(relativeRms(clipOf(frames), expected)).toBeLessThan(1e-4);
});

test.each(['light', 'tiny'] as const)('a model without the %s decoder says so', async (decoder) => {
  const plain = new WanModel(await openTiny());
  expect(plain.decoders).toEqual(['full']);
  await expect(collect(plain.decode(backend, { ...clip, decoder }))).rejects.toMatchObject({
    code: 'MODEL_FILE_MISSING',
    message: expect.stringContaining(`no ${decoder} decoder`),
    remedy: expect.stringContaining('decode with the full decoder'),
  });
});

test('a file of another kind is refused when the model is opened', async () => {
  const other = await readFile(`${goldens}loras/a_peft.safetensors`);
  await expect(openWith(new Uint8Array(other))).rejects.toMatchObject({ code: 'MODEL_WRONG_KIND' });
});

test('a frame with invalid numbers ends the run', async () => {
  const { parts } = model;
  const tinyDecoder = Object.assign(Object.create(parts.tinyDecoder), {
    read: async (name: string) => {
      const data = await parts.tinyDecoder?.read(name);
      return name === 'decoder.22.bias' ? data?.map(() => Number.NaN) : data;
    },
  });
  const image = smoothImage({ width: 64, height: 32 });
  const broken = { ...parts, tinyDecoder };
  await expect(
    makeVideo(backend, broken, { image, steps: 1, decoder: 'tiny' }),
  ).rejects.toMatchObject({
    code: 'LATENTS_NOT_FINITE',
    message: expect.stringMatching(/^Frame 1 of the decoded clip/),
  });
});
