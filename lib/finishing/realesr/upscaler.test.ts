import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { nodeBackend } from '../../models/wan/testing/model';
import { diskFolder } from '../../weights/testing/files';
import { openUpscaler } from './upscaler';

const backend = nodeBackend();
afterAll(() => backend.dispose());
const goldens = diskFolder(fileURLToPath(new URL('../goldens/', import.meta.url)));
const { signal } = new AbortController();
const [width, height] = [24, 150];
const frame = {
  width,
  height,
  data: Float32Array.from({ length: 3 * width * height }, (_, i) => Math.sin(i * i)),
};

test('strips where memory wants them give the numbers of the whole frame', async () => {
  const upscaler = await openUpscaler(
    backend,
    await goldens.open('tiny-realesr/model.safetensors'),
  );
  const whole = await upscaler.enlarge(frame, 2, signal);
  const wanted = backend.peakBytes;
  upscaler.dispose();
  backend.resetPeaks();
  backend.ceiling = wanted;
  const inStrips = await upscaler.enlarge(frame, 2, signal);
  expect(backend.peakBytes).toBeLessThan(0.8 * wanted);
  expect(inStrips).toEqual(whole);
  upscaler.dispose();
  // Known before the first frame.
  await upscaler.requireRoom(frame, 2);
  backend.ceiling = 10_000;
  await expect(upscaler.requireRoom(frame, 2)).rejects.toMatchObject({
    code: 'OUT_OF_MEMORY',
    remedy: expect.stringContaining('CPU'),
  });
  await expect(upscaler.enlarge(frame, 2, signal)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' });
  expect(backend.counters().liveBytes).toBe(0);
  backend.ceiling = Number.POSITIVE_INFINITY;
});

test('a cancelled frame frees the device', async () => {
  const upscaler = await openUpscaler(
    backend,
    await goldens.open('tiny-realesr/model.safetensors'),
  );
  const controller = new AbortController();
  const running = upscaler.enlarge(frame, 4, controller.signal);
  controller.abort('enough');
  await expect(running).rejects.toBe('enough');
  expect(backend.counters().liveBytes).toBe(0);
});

test('another file is refused with the tensor that it lacks', async () => {
  const other = openUpscaler(backend, await goldens.open('tiny-rife/model.safetensors'));
  await expect(other).rejects.toMatchObject({
    code: 'TENSOR_MISSING',
    message: expect.stringContaining('body.0.weight'),
  });
});

test('the file of the authors’ form, a PyTorch checkpoint, is the same network', async () => {
  const upscaler = await openUpscaler(backend, await goldens.open('compact.pth'));
  const { data, ...size } = await upscaler.enlarge(frame, 2, signal);
  upscaler.dispose();
  expect(size).toEqual({ width: 48, height: 300 });
  // As PyTorch computes it.
  const some = [data[0], data[20_000], data.at(-1)].map((value) => value?.toFixed(3));
  expect(some).toEqual(['0.171', '0.897', '0.157']);
});
