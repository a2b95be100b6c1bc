import { expect, test } from 'vitest';
import { at, framesInFile, KinoraError } from '../contract';
import type { Frame } from '../pipeline/latents';
import { Finisher, type FinisherOptions, openFinishers } from './finisher';

const size = { width: 4, height: 2 };
const grey = (value: number): Frame => ({ ...size, data: new Float32Array(24).fill(value) });
/** The mean of two frames: what is between them can be read from it. */
const interpolator: FinisherOptions['interpolator'] = {
  between: async (a, b) => ({
    ...a,
    data: a.data.map((value, i) => (value + (b.data[i] ?? 0)) / 2),
  }),
  dispose: () => undefined,
};
const { signal } = new AbortController();

/** The grey of each frame that is written for frames of 0, 0.2, 0.4 … */
async function written(count: number, options: Partial<FinisherOptions>): Promise<number[]> {
  const greys: number[] = [];
  const finisher = new Finisher({
    source: size,
    target: size,
    finishing: {},
    frames: 3,
    loop: false,
    interpolator: null,
    upscaler: null,
    signal,
    write: async (_, pixels) => void greys.push(pixels()[0] ?? -1),
    ...options,
  });
  // One buffer for all: a frame is valid only until it is taken.
  const frame = grey(0);
  for (let i = 0; i < count; i++) {
    frame.data.fill(0.2 * i);
    await finisher.add(frame);
  }
  expect(await finisher.end()).toBe(greys.length);
  return greys;
}

test('a smooth video has the frames as they are and one between each two, a loop also at its seam', async () => {
  const [first, second, third] = await written(3, {});
  const between = [140, 166];
  const smooth = await written(3, { interpolator });
  expect(smooth).toEqual([first, between[0], second, between[1], third]);
  expect(smooth).toHaveLength(framesInFile(3, { smooth: true }));
  const loop = await written(3, { interpolator, loop: true });
  expect(loop).toEqual([...smooth, 153]);
  expect(loop).toHaveLength(framesInFile(4, { loop: true, smooth: true }));
  // Finished early it does not close.
  expect(await written(2, { interpolator, loop: true })).toEqual(smooth.slice(0, 3));
});

test('what the network enlarges goes into the size of the video; a device without room says what helps', async () => {
  const nearest = ({ width, height, data }: Frame) => {
    const large = { width: 2 * width, height: 2 * height };
    const index = (i: number) => Math.floor(i / large.width / 2) * width + ((i % large.width) >> 1);
    return {
      ...large,
      data: Float32Array.from({ length: 4 * data.length }, (_, i) => at(data, index(i))),
    };
  };
  const target = { width: 8, height: 4 };
  const upscaler: FinisherOptions['upscaler'] = {
    requireRoom: async () => undefined,
    enlarge: async (frame) => nearest(frame),
    dispose: () => undefined,
  };
  const smooth = { target, finishing: { upscale: 2 as const }, upscaler, interpolator };
  expect(await written(3, smooth)).toEqual(await written(3, { interpolator }));
  const full = { ...upscaler, enlarge: () => Promise.reject(new KinoraError('OUT_OF_MEMORY')) };
  await expect(written(1, { ...smooth, upscaler: full })).rejects.toMatchObject({
    code: 'OUT_OF_MEMORY',
    remedy: expect.stringContaining('finished video larger'),
  });
});

test('a network that was not downloaded is named before a run', async () => {
  const asked = { upscale: 2, upscaler: 'realesr-general-x4v3' } as const;
  const missing = openFinishers(asked, { finisher: async () => null }, () => Promise.reject());
  await expect(missing).rejects.toMatchObject({
    code: 'MODEL_NOT_INSTALLED',
    remedy: expect.stringContaining('npm run models -- download realesr-general-x4v3'),
  });
});
