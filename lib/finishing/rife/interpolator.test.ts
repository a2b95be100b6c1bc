import { fileURLToPath } from 'node:url';
import { afterAll, expect, test, vi } from 'vitest';
import { nodeBackend } from '../../models/wan/testing/model';
import type { Frame } from '../../pipeline/latents';
import { blobFile, openSafetensors, type WeightFile } from '../../weights';
import { diskFolder, f32, safetensorsBytes, type TestTensor } from '../../weights/testing/files';
import { isCut, similarity } from './cuts';
import { openInterpolator } from './interpolator';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const goldens = diskFolder(fileURLToPath(new URL('../goldens/', import.meta.url)));
const { signal } = new AbortController();

/** Waves that are `shift` pixels further to the right. */
function waves(shift: number, width = 70, height = 40): Frame {
  const data = Float32Array.from({ length: 3 * width * height }, (_, i) => {
    const [x, y] = [(i % width) - shift, Math.floor(i / width) % height];
    return 0.8 * Math.sin(x / 5 + y / 9);
  });
  return { data, width, height };
}

const plainFile = await goldens.open('tiny-rife/model.safetensors');

/** The golden file by other names, without the tensors that get none. */
async function renamed(rename: (name: string) => string | null): Promise<WeightFile> {
  const file = await openSafetensors(plainFile);
  const tensors: Record<string, TestTensor> = {
    'teacher.conv0.weight': f32([1]),
    'caltime.0.bias': f32([1]),
  };
  for (const name of file.names()) {
    const other = rename(name);
    const data = Float32Array.from(await file.read(name));
    if (other) tensors[other] = { shape: file.shape(name), data };
  }
  return blobFile('rife.safetensors', new Blob([safetensorsBytes(tensors)]));
}

test('all forms of names give the frame of the plain one, which keeps the size of its neighbours', async () => {
  const frames = [];
  for (const file of [
    plainFile,
    await renamed((name) => `module.flownet.${name}`),
    await renamed((name) => `flownet.${name.replace(/^block(\d)/, 'blocks.$1')}`),
  ]) {
    const interpolator = await openInterpolator(backend, file);
    frames.push(await interpolator.between(waves(0), waves(2), signal));
    interpolator.dispose();
  }
  expect(frames[0]).toMatchObject({ width: 70, height: 40 });
  expect(frames[1]).toEqual(frames[0]);
  expect(frames[2]).toEqual(frames[0]);
  expect(backend.counters().liveBytes).toBe(0);
});

test('a frame that two pairs share is encoded once, and nothing stands across a cut', async () => {
  const [a, b, c] = [waves(0), waves(2), waves(4)];
  const run = vi.spyOn(backend, 'run');
  const interpolator = await openInterpolator(backend, plainFile);
  await interpolator.between(a, b, signal);
  const second = await interpolator.between(b, c, signal);
  const heads = run.mock.calls.filter(([graph]) => graph.name === 'RIFE, head');
  run.mockRestore();
  expect(heads.length).toBe(3);
  const negative = { ...c, data: c.data.map((value) => -value) };
  expect(await interpolator.between(c, negative, signal)).toBeNull();
  interpolator.dispose();
  const alone = await openInterpolator(backend, plainFile);
  expect(await alone.between(b, c, signal)).toEqual(second);
  alone.dispose();
});

test('a cut is where the small pictures have little in common', () => {
  const [a, b] = [waves(0), waves(3)];
  expect(similarity(a, a)).toBeCloseTo(1, 10);
  expect([isCut(a, b), isCut(a, { ...b, data: b.data.map((value) => 0.5 - value) })]).toEqual([
    false,
    true,
  ]);
});

test('another file, and an incomplete one, are refused with the tensor that is missing', async () => {
  const files = {
    'encode.cnn3.weight': await goldens.open('tiny-realesr/model.safetensors'),
    'block3.convblock.2.beta': await renamed((name) =>
      name.endsWith('3.convblock.2.beta') ? null : name,
    ),
  };
  for (const [tensor, file] of Object.entries(files)) {
    await expect(openInterpolator(backend, file)).rejects.toMatchObject({
      code: 'TENSOR_MISSING',
      message: expect.stringContaining(tensor),
    });
  }
});
