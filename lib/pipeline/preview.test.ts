import { expect, test } from 'vitest';
import { openGolden } from '../weights/testing/files';
import type { LatentSize, LatentToRgb } from './latents';
import { previewStrip as strip } from './preview';

/** The bias of ComfyUI's map for Wan2.2, and of its matrix the two rows that the tests look at. */
const toRgb: LatentToRgb = {
  bias: [0.0317, -0.0878, -0.1388],
  matrix: Array.from({ length: 48 }, (_, channel) =>
    channel === 21 ? [0.039, 0.067, 0.2863] : [0.0006, -0.0167, 0.0079],
  ),
};
const previewStrip = ({ values, ...size }: LatentSize & { values: Float32Array }, most: number) =>
  strip(values, size, toRgb, most);

const blank = (frames: number) => ({
  values: new Float32Array(48 * frames * 6),
  frames,
  height: 2,
  width: 3,
});

test('an empty latent has the colour of the bias', () => {
  const { pixels, width, height, count } = previewStrip(blank(2), 4);
  expect([width, height, count]).toEqual([3, 2, 2]);
  expect(pixels).toHaveLength(2 * 6 * 4);
  const colour = [0.0317, -0.0878, -0.1388].map((x) => Math.round((x + 1) * 127.5));
  expect([...pixels.subarray(20, 24)]).toEqual([...colour, 255]);
});

test('one channel of one pixel changes that pixel of that frame by its row', () => {
  const latents = blank(3);
  // Channel 23, frame 1, row 1, column 2: (.0006, −.0167, .0079) × 20.
  latents.values[((23 * 3 + 1) * 2 + 1) * 3 + 2] = 20;
  const { pixels } = previewStrip(latents, 3);
  const plain = previewStrip(blank(3), 3).pixels;
  const changed = [...pixels.keys()].filter((i) => pixels[i] !== plain[i]);
  const at = (1 * 6 + 5) * 4;
  expect(changed).toEqual([at, at + 1, at + 2]);
  expect(pixels[at + 1]).toBe(Math.round((-0.0878 - 0.0167 * 20 + 1) * 127.5));
});

test('frames are spread from the first to the last', () => {
  const latents = blank(9);
  // Channel 21 rises with the frame: (.0390, .0670, .2863).
  for (let frame = 0; frame < 9; frame++) {
    latents.values.fill(frame / 4, (21 * 9 + frame) * 6, (21 * 9 + frame + 1) * 6);
  }
  const all = previewStrip(latents, 20).pixels;
  const some = previewStrip(latents, 5);
  expect(some.count).toBe(5);
  for (const [i, frame] of [0, 2, 4, 6, 8].entries()) {
    expect(some.pixels.subarray(i * 24, (i + 1) * 24)).toEqual(
      all.subarray(frame * 24, (frame + 1) * 24),
    );
  }
  expect(previewStrip(latents, 1).pixels).toEqual(all.slice(0, 24));
});

test('real latents give a picture', async () => {
  const golden = await openGolden('golden.safetensors');
  const [, , frames = 0, height = 0, width = 0] = golden.shape('final_latents');
  const values = await golden.read('final_latents');
  const picture = previewStrip({ values, frames, height, width }, 8);
  expect(picture.count).toBe(3);
  expect(new Set(picture.pixels).size).toBeGreaterThan(20);
});

test('refuses other channels and wrong lengths', () => {
  const other = { ...blank(1), values: new Float32Array(16 * 6) };
  expect(() => previewStrip(other, 1)).toThrow(TypeError);
  expect(() => previewStrip({ ...blank(1), frames: 2 }, 1)).toThrow(TypeError);
  expect(() => previewStrip(blank(1), 0)).toThrow(RangeError);
});
