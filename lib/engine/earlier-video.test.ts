import { expect, test } from 'vitest';
import { lastFrames } from './earlier-video';

test('whole latent frames of the end, at the model’s rate, as many as there are', () => {
  const of = (latents: number, frames: number, rate = 24) =>
    lastFrames({ framesPerSecond: 24, frameStride: 4 }, latents, frames, rate);
  expect(of(3, 121)).toEqual([112, 113, 114, 115, 116, 117, 118, 119, 120]);
  expect(of(2, 241, 48)).toEqual([232, 234, 236, 238, 240]);
  expect(of(3, 8)).toEqual([3, 4, 5, 6, 7]);
  expect(of(3, 3)).toEqual([2]);
  expect(of(1, 121)).toEqual([120]);
});
