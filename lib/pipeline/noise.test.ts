import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { gaussianNoise, philox4x32 } from './noise';

describe('philox4x32', () => {
  // Known answers of the Random123 distribution.
  test.each([
    [
      '00000000 00000000 00000000 00000000',
      '00000000 00000000',
      '6627e8d5 e169c58d bc57ac4c 9b00dbd8',
    ],
    [
      'ffffffff ffffffff ffffffff ffffffff',
      'ffffffff ffffffff',
      '408f276d 41c83b0e a20bc7c6 6d5451fd',
    ],
    [
      '243f6a88 85a308d3 13198a2e 03707344',
      'a4093822 299f31d0',
      'd16cfe09 94fdcceb 5001e420 24126ea1',
    ],
  ])('of counter %s with key %s', (counter, key, answer) => {
    const words = Uint32Array.from(parse(counter));
    const [low = 0, high = 0] = parse(key);
    philox4x32(words, low, high);
    expect([...words]).toEqual(parse(answer));
  });
});

describe('gaussianNoise', () => {
  test('the draws of a stream are independent, and the first one is the default', () => {
    const of = (draw?: number) =>
      gaussianNoise({
        seed: 42,
        stream: 1,
        count: 20_000,
        ...(draw === undefined ? {} : { draw }),
      });
    const [none, first, second] = [of(), of(0), of(1)];
    expect(first).toEqual(none);
    const product = second.reduce((sum, value, i) => sum + value * (first[i] ?? Number.NaN), 0);
    // The mean product of 20,000 independent pairs has a deviation of 0.007.
    expect(Math.abs(product / 20_000)).toBeLessThan(0.035);
    expect(second.reduce((sum, value) => sum + value ** 2, 0) / 20_000).toBeCloseTo(1, 1);
  });

  test('is the same on every machine: bytes that an independent program also gives', () => {
    const first = gaussianNoise({ seed: 42, stream: 0, count: 8 });
    expect(hex(first)).toBe('5c5e78bfe8ac463ed2289ebf3b43f63f30e095bd0f7a0e3e33a78dbffd42a73e');
    const many = gaussianNoise({ seed: 9_999_999_999, stream: 3, count: 100_000 });
    expect(createHash('sha256').update(new Uint8Array(many.buffer)).digest('hex')).toBe(
      'e342b80d9e6117a1655201987d072334fa6d2eb981079861389e6f384a26781f',
    );
  });

  test('agrees with the engine’s own functions over many words', () => {
    const count = 40_000;
    const values = gaussianNoise({ seed: 7, stream: 1, count });
    const words = new Uint32Array(4);
    let worst = 0;
    for (let block = 0; block < count / 4; block++) {
      words.set([block, 0, 1, 0]);
      philox4x32(words, 7, 0);
      for (const pair of [0, 2]) {
        const radius = Math.sqrt(-2 * Math.log(((words[pair] ?? 0) + 0.5) / 2 ** 32));
        const angle = (2 * Math.PI * ((words[pair + 1] ?? 0) + 0.5)) / 2 ** 32;
        const at = block * 4 + pair;
        worst = Math.max(
          worst,
          Math.abs((values[at] ?? Number.NaN) - radius * Math.cos(angle)),
          Math.abs((values[at + 1] ?? Number.NaN) - radius * Math.sin(angle)),
        );
      }
    }
    expect(worst).toBeLessThan(3e-7); // half a unit in the last place of an f32 near 5
  });

  test('value i depends on seed, stream and i alone', () => {
    const all = gaussianNoise({ seed: 5, stream: 2, count: 1003 });
    expect(gaussianNoise({ seed: 5, stream: 2, count: 17 })).toEqual(all.slice(0, 17));
    for (const offset of [1, 2, 3, 4, 500, 1002]) {
      const part = gaussianNoise({ seed: 5, stream: 2, count: 1003 - offset, offset });
      expect(part).toEqual(all.slice(offset));
    }
  });

  test('refuses what is no whole number in range', () => {
    const good = { seed: 1, stream: 0, count: 1 };
    for (const bad of [
      { seed: -1 },
      { seed: 0.5 },
      { seed: 2 ** 53 },
      { stream: 2 ** 32 },
      { count: -1 },
    ]) {
      expect(() => gaussianNoise({ ...good, ...bad })).toThrow(RangeError);
    }
    expect(gaussianNoise({ ...good, count: 0 })).toHaveLength(0);
  });
});

function parse(words: string): number[] {
  return words.split(' ').map((word) => Number.parseInt(word, 16));
}

function hex(values: Float32Array<ArrayBuffer>): string {
  return Buffer.from(values.buffer).toString('hex');
}
