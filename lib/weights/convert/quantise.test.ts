import { describe, expect, test } from 'vitest';
import { relativeRms } from '../../gpu';
import { openGolden } from '../testing/files';
import { dequantiseBlocks, quantiseBlocks } from './quantise';

describe('quantiseBlocks with 8 bits', () => {
  test('puts the largest value of a block at ±127 around 128', () => {
    const weight = new Float32Array(64);
    weight.set([-4, 2, 1, 0.02]);
    const { values, scales } = quantiseBlocks(weight, 1, 64, 8);
    expect([...values.subarray(0, 5)]).toEqual([1, 192, 160, 129, 128]);
    expect([...scales]).toEqual([Math.fround(4 / 127), 0]);
    expect(values.subarray(32).every((value) => value === 128)).toBe(true);
  });

  test('is off by at most half a step', async () => {
    const weights = await openGolden('model/transformer/diffusion_pytorch_model.safetensors');
    const name = 'blocks.0.ffn.net.0.proj.weight';
    const [rows = 0, columns = 0] = weights.shape(name);
    const weight = await weights.read(name);
    const blocks = quantiseBlocks(weight, rows, columns, 8);
    const back = dequantiseBlocks(blocks, rows, columns);
    for (let i = 0; i < weight.length; i++) {
      const half = (blocks.scales[i >> 5] ?? 0) / 2;
      expect(Math.abs((back[i] ?? 0) - (weight[i] ?? 0))).toBeLessThanOrEqual(half * 1.000_05);
    }
    expect(relativeRms(back, weight)).toBeLessThan(0.01);
    // What was quantised once stays as it is.
    expect(quantiseBlocks(back, rows, columns, 8).values).toEqual(blocks.values);
  });

  test('survives the smallest and the largest numbers', () => {
    const weight = new Float32Array(64);
    weight.fill(3.4e38, 0, 32);
    weight.fill(-1e-45, 32);
    const back = dequantiseBlocks(quantiseBlocks(weight, 2, 32, 8), 2, 32);
    expect(relativeRms(back.subarray(0, 32), weight.subarray(0, 32))).toBeLessThan(1e-6);
    expect(back.every(Number.isFinite)).toBe(true);
  });

  test('refuses what it cannot hold', () => {
    expect(() => quantiseBlocks(new Float32Array(48), 1, 48, 8)).toThrow(TypeError);
    expect(() => quantiseBlocks(new Float32Array(32), 2, 32, 8)).toThrow(TypeError);
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const weight = new Float32Array(32);
      weight[17] = bad;
      expect(() => quantiseBlocks(weight, 1, 32, 8)).toThrow(RangeError);
    }
    const blocks = quantiseBlocks(new Float32Array(32), 1, 32, 8);
    expect(() => dequantiseBlocks(blocks, 1, 64)).toThrow(TypeError);
  });
});

describe('quantiseBlocks with 4 bits', () => {
  test('keeps what 4 bits can hold', () => {
    const weight = Float32Array.from({ length: 64 }, (_, i) => ((i * 5) % 16) - 8);
    weight.fill(0, 32);
    const { values, scales } = quantiseBlocks(weight, 2, 32, 4);
    expect([...values.subarray(0, 4)]).toEqual([0x50, 0xfa, 0x94, 0x3e]);
    expect(values.subarray(16).every((pair) => pair === 0x88)).toBe(true);
    expect(scales[0]).toBeCloseTo(1, 6);
    expect(scales[1]).toBe(0);
    const back = dequantiseBlocks({ bits: 4, values, scales }, 2, 32);
    expect(relativeRms(back, weight)).toBeLessThan(1e-6);
  });

  test('is closer than Q4_0 in every block', async () => {
    const weights = await openGolden('model/transformer/diffusion_pytorch_model.safetensors');
    const name = 'blocks.0.ffn.net.0.proj.weight';
    const [rows = 0, columns = 0] = weights.shape(name);
    const weight = await weights.read(name);
    const back = dequantiseBlocks(quantiseBlocks(weight, rows, columns, 4), rows, columns);
    const simple = weight.slice();
    for (let start = 0; start < weight.length; start += 32) {
      const block = simple.subarray(start, start + 32);
      const extreme = block.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
      const scale = extreme / -8;
      block.set(block.map((w) => scale * Math.min(Math.round(w / scale), 7)));
      const source = weight.subarray(start, start + 32);
      const ours = relativeRms(back.subarray(start, start + 32), source);
      expect(ours).toBeLessThanOrEqual(relativeRms(block, source) * 1.000_01);
    }
    expect(relativeRms(back, weight) / relativeRms(simple, weight)).toBeLessThan(0.97);
  });

  test('refuses what it cannot hold', () => {
    expect(() => quantiseBlocks(new Float32Array(48), 1, 48, 4)).toThrow(TypeError);
    const bad = new Float32Array(64).fill(Number.NaN);
    expect(() => quantiseBlocks(bad, 2, 32, 4)).toThrow(RangeError);
    // Nothing of it stays behind in the kernels' memory.
    const blocks = quantiseBlocks(new Float32Array(32), 1, 32, 4);
    expect(() => dequantiseBlocks({ ...blocks, bits: 8 }, 1, 32)).toThrow(TypeError);
  });
});
