import { expect, test } from 'vitest';
import { framesInFile } from '../contract';
import type { Frame } from '../pipeline/latents';
import { Finisher, type FinisherOptions } from './finisher';

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
    upscale: false,
    frames: 3,
    loop: false,
    interpolator: null,
    signal,
    write: async (pixels) => void greys.push(pixels[0] ?? -1),
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
  expect(smooth).toHaveLength(framesInFile(3, false, true));
  const loop = await written(3, { interpolator, loop: true });
  expect(loop).toEqual([...smooth, 153]);
  expect(loop).toHaveLength(framesInFile(4, true, true));
  // Finished early it does not close.
  expect(await written(2, { interpolator, loop: true })).toEqual(smooth.slice(0, 3));
});
