import { describe, expect, test } from 'vitest';
import { latentFrame } from '../../pipeline/latents';
import { readModelConfig } from './model-config';
import { realFolder } from './testing/model';
import { chunkTokens, headRows, latentsToTokens, tokensPerFrame, tokensToLatents } from './tokens';
import { rotaryTables } from './transformer/transformer-network';

const { transformer: real } = await readModelConfig(realFolder);
/** 1280×704 in 121 frames. */
const clip = { frames: 31, height: 44, width: 80 };

const ramp = (count: number) => Float32Array.from({ length: count }, (_, i) => i);

describe('latents and tokens', () => {
  test('the 5B has 880 tokens per frame and 27,280 in a clip', () => {
    expect(tokensPerFrame(real, clip)).toBe(880);
    expect(clip.frames * tokensPerFrame(real, clip)).toBe(27_280);
  });

  test('a token holds its patch in the order channel, row, column', () => {
    // [2 channels, 2 frames, 2, 4]: the digits say channel, frame, row and column.
    const size = { frames: 2, height: 2, width: 4 };
    const latents = new Float32Array(2 * 2 * 2 * 4);
    for (let c = 0; c < 2; c++) {
      for (let f = 0; f < 2; f++) {
        for (let y = 0; y < 2; y++) {
          for (let x = 0; x < 4; x++) {
            latents[((c * 2 + f) * 2 + y) * 4 + x] = 1000 * c + 100 * f + 10 * y + x;
          }
        }
      }
    }
    expect([...latentsToTokens(latents, 2, size, real)]).toEqual([
      ...[0, 1, 10, 11, 1000, 1001, 1010, 1011], // frame 0, left patch
      ...[2, 3, 12, 13, 1002, 1003, 1012, 1013], // frame 0, right patch
      ...[100, 101, 110, 111, 1100, 1101, 1110, 1111],
      ...[102, 103, 112, 113, 1102, 1103, 1112, 1113],
    ]);
  });

  test('back and forth is where one started', () => {
    const size = { frames: 3, height: 4, width: 6 };
    const latents = ramp(5 * 3 * 4 * 6);
    const tokens = latentsToTokens(latents, 5, size, real);
    expect(tokens).not.toEqual(latents);
    expect(tokensToLatents(tokens, 5, size, real)).toEqual(latents);
  });

  test('one frame of the latents', () => {
    const size = { frames: 3, height: 1, width: 2 };
    expect([...latentFrame(ramp(2 * 3 * 2), size, 1)]).toEqual([2, 3, 8, 9]);
  });

  test('the head’s rows are taken from (row, column, channel) to (channel, row, column)', () => {
    const rows = headRows(real);
    expect(rows.slice(0, 5)).toEqual([0, 48, 96, 144, 1]);
    expect(new Set(rows).size).toBe(192);
    expect(rows.at(-1)).toBe(191);
  });
});

describe('rotary tables', () => {
  test('the 5B’s 64 pairs are 22 for time, 21 for rows and 21 for columns', () => {
    const size = { frames: 2, height: 4, width: 6 };
    const { cos, sin } = rotaryTables(real, size);
    expect(cos.length).toBe(2 * 2 * 3 * 64);
    const token = 64 * (1 * 6 + 1 * 3 + 2); // frame 1, row 1, column 2
    const angles = [
      [0, 1],
      [1, 10_000 ** (-2 / 44)],
      [21, 10_000 ** (-42 / 44)],
      [22, 1],
      [23, 10_000 ** (-2 / 42)],
      [42, 10_000 ** (-40 / 42)],
      [43, 2],
      [44, 2 * 10_000 ** (-2 / 42)],
      [63, 2 * 10_000 ** (-40 / 42)],
    ] as const;
    for (const [pair, angle] of angles) {
      expect(cos[token + pair]).toBeCloseTo(Math.cos(angle), 6);
      expect(sin[token + pair]).toBeCloseTo(Math.sin(angle), 6);
    }
    // The first token stands at the origin.
    expect(cos.subarray(0, 64).every((value) => value === 1)).toBe(true);
    expect(sin.subarray(0, 64).every((value) => value === 0)).toBe(true);
  });

  test.each([
    [32, 6 + 5], // 12, 10, 10
    [16, 4 + 2], // 8, 4, 4: thirds are rounded down
  ])('in a head of %i the columns begin at pair %i', (attention_head_dim, first) => {
    const config = { ...real, attention_head_dim };
    const { sin } = rotaryTables(config, { frames: 1, height: 2, width: 4 });
    const pairs = attention_head_dim / 2;
    const second = [...sin.subarray(pairs, 2 * pairs)]; // frame 0, row 0, column 1
    expect(second.findIndex((value) => value !== 0)).toBe(first);
    expect(second[first]).toBeCloseTo(Math.sin(1), 6);
  });
});

describe('chunks', () => {
  test('the 5B’s clip is the conditioning frame and ten equal chunks of three frames', () => {
    const chunks = chunkTokens(31, 880, 1, 2680);
    expect(chunks).toHaveLength(11);
    expect(chunks[0]).toEqual({ start: 0, count: 880, conditioning: true });
    expect(chunks.slice(1).map(({ count }) => count)).toEqual(Array(10).fill(2640));
    expect(chunks.slice(1).some(({ conditioning }) => conditioning)).toBe(false);
  });

  test('cover every token once, never mix conditioning and noisy ones, and keep the limit', () => {
    for (const frames of [1, 2, 3, 7, 13, 31]) {
      for (const conditioningFrames of [0, 1, 2]) {
        for (const most of [1, 2, 4, 5, 6, 11, 12, 40, 4096]) {
          if (conditioningFrames > frames) continue;
          const perFrame = 6;
          const chunks = chunkTokens(frames, perFrame, conditioningFrames, most);
          let next = 0;
          for (const chunk of chunks) {
            expect(chunk.start).toBe(next);
            expect(chunk.count).toBeGreaterThan(0);
            expect(chunk.count).toBeLessThanOrEqual(most);
            next += chunk.count;
            expect(chunk.conditioning).toBe(next <= conditioningFrames * perFrame);
            // A frame is not cut without need.
            if (most >= perFrame) expect(chunk.count % perFrame).toBe(0);
          }
          expect(next).toBe(frames * perFrame);
        }
      }
    }
  });

  test('a slow device gets parts of frames, all of one size where that can be', () => {
    const chunks = chunkTokens(3, 880, 1, 256);
    expect(chunks.map(({ count }) => count)).toEqual(Array(12).fill(220));
    expect(chunks.map(({ conditioning }) => conditioning)).toEqual([
      ...Array(4).fill(true),
      ...Array(8).fill(false),
    ]);
    // 7 has no divisor to speak of: the last part of the conditioning and of the noisy tokens is smaller.
    expect(chunkTokens(2, 7, 1, 4).map(({ count }) => count)).toEqual([4, 3, 4, 3]);
  });
});
