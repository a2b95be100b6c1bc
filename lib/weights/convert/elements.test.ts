import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { relativeRms } from '../../gpu';
import { openTensorFile } from '../formats/tensor-file';
import { diskFile, goldens, openGolden } from '../testing/files';
import { blockSize } from './blocks';
import { convertToBlocks, decodeElements, elementType } from './elements';
import { dequantiseBlocks, quantiseBlocks } from './quantise';

/** Byte offsets of the f16 scales in a block of each GGML type. */
const scaleOffsets: Readonly<Record<string, readonly number[]>> = {
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q2_K: [80, 82],
  Q3_K: [108],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
};
const ggmlTypes = Object.keys(scaleOffsets);
const widths = [8, 4] as const;

/** Names in the golden file of element types. */
const safetensorsNames: Readonly<Record<string, string>> = {
  F32: 'f32',
  F16: 'f16',
  BF16: 'bf16',
  F8_E4M3: 'fp8',
  F8_E5M2: 'e5m2',
};

/** A tensor of the golden file of element types as it is stored; the fp8 one has a factor. */
async function storedElements(name: string) {
  const { file, tensors } = await openTensorFile(
    await diskFile(`${goldens}formats/element-types.safetensors`),
  );
  async function bytesOf(tensor: string) {
    const entry = tensors.get(tensor);
    return file.read(entry?.start ?? 0, entry?.end ?? 0);
  }
  const scale = decodeElements(await bytesOf('fp8.scale_weight'), 'F32', 'fp8.scale_weight');
  return { bytes: await bytesOf(name), factor: name === 'fp8.weight' ? (scale[0] ?? 0) : 1 };
}

function emptyTarget(elements: number, bits: 8 | 4) {
  return {
    values: new Uint8Array((elements * bits) / 8),
    scales: new Float32Array(elements / blockSize),
  };
}

/** Whole 256-element runs of any type, every number finite. */
function finiteBytes(dtype: string): fc.Arbitrary<Uint8Array> {
  const { elements, bytes } = elementType(dtype, 'x');
  const perRun = (256 / elements) * bytes;
  const scale = fc.oneof(
    fc.constantFrom(0, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff), // zeros, subnormals, ±65504
    fc.integer({ min: 0, max: 0xffff }).filter((half) => (half & 0x7c00) !== 0x7c00),
  );
  return fc
    .tuple(
      fc.integer({ min: 1, max: 3 }),
      fc.array(scale, { minLength: 1, maxLength: 8 }),
      fc.infiniteStream(fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(0, 255))),
    )
    .map(([runs, scales, stream]) => {
      const source = new Uint8Array(runs * perRun).map(() => stream.next().value ?? 0);
      const view = new DataView(source.buffer);
      let next = 0;
      for (let at = 0; at < source.length; at += bytes) {
        for (const offset of scaleOffsets[dtype] ?? []) {
          view.setUint16(at + offset, scales[next++ % scales.length] ?? 0, true);
        }
      }
      makeFinite(dtype, view);
      return source;
    });
}

function makeFinite(dtype: string, view: DataView): void {
  for (let at = 0; at < view.byteLength; at++) {
    const byte = view.getUint8(at);
    if (dtype === 'F32' && at % 4 === 3) view.setUint8(at, byte & 0xbf); // |w| < 2
    if (dtype === 'BF16' && at % 2 === 1) view.setUint8(at, byte & 0xbf);
    if (dtype === 'F16' && at % 2 === 1) view.setUint8(at, byte & 0xfb); // an even exponent
    if (dtype === 'F8_E5M2') view.setUint8(at, byte & 0xfb);
    if (dtype === 'F8_E4M3' && (byte & 127) === 127) view.setUint8(at, byte & 0x80);
  }
}

describe('decodeElements', () => {
  test.each([...ggmlTypes, 'F32', 'F16', 'BF16'])('%s of GGUF is exact', async (dtype) => {
    const { file, tensors } = await openTensorFile(
      await diskFile(`${goldens}formats/ggml-types.gguf`),
    );
    const expected = await openGolden('formats/ggml-types-f32.safetensors');
    const entry = tensors.get(dtype);
    expect(entry?.dtype).toBe(dtype);
    const bytes = await file.read(entry?.start ?? 0, entry?.end ?? 0);
    expect(decodeElements(bytes, dtype, dtype)).toEqual(await expected.read(dtype));
  });

  test.each(Object.keys(safetensorsNames))('%s of safetensors is exact', async (dtype) => {
    const name = `${safetensorsNames[dtype]}.weight`;
    const { bytes, factor } = await storedElements(name);
    const expected = await openGolden('formats/element-types-f32.safetensors');
    const values = decodeElements(bytes, dtype, name).map((value) => value * factor);
    expect(values).toEqual(await expected.read(name));
  });

  test('refuses half a block and an unknown type', () => {
    for (const dtype of [...ggmlTypes, 'F32', 'F16', 'BF16']) {
      const { bytes } = elementType(dtype, 'some.weight');
      const error = { code: 'MODEL_FILE_INVALID', message: expect.stringContaining('some.weight') };
      const cut = new Uint8Array(3 * bytes - 1);
      expect(() => decodeElements(cut, dtype, 'some.weight')).toThrow(
        expect.objectContaining(error),
      );
      expect(() => convertToBlocks(cut, dtype, 8, emptyTarget(0, 8), 'some.weight')).toThrow(
        expect.objectContaining(error),
      );
    }
    for (const dtype of ['I64', 'IQ2_XS', 'toString']) {
      expect(() => elementType(dtype, 'some.weight')).toThrow(
        expect.objectContaining({
          code: 'TENSOR_DTYPE',
          message: expect.stringMatching(`some.weight.*${dtype}`),
        }),
      );
    }
  });
});

describe('convertToBlocks', () => {
  describe.each([...ggmlTypes, ...Object.keys(safetensorsNames)])('%s', (dtype) => {
    test.each(widths)('to %i bits is what decoding and quantising give', (bits) => {
      fc.assert(
        fc.property(finiteBytes(dtype), (source) => {
          const floats = decodeElements(source, dtype, 'x');
          const target = emptyTarget(floats.length, bits);
          const { squaredError, squaredNorm } = convertToBlocks(source, dtype, bits, target, 'x');
          const back = dequantiseBlocks({ bits, ...target }, 1, floats.length);
          if (dtype === (bits === 8 ? 'Q8_0' : 'Q4_0')) {
            expect(back).toEqual(floats);
            expect(squaredError).toBe(0);
          } else {
            expect({ bits, ...target }).toEqual(quantiseBlocks(floats, 1, floats.length, bits));
          }
          const norm = floats.reduce((sum, w) => sum + w * w, 0);
          const error = floats.reduce((sum, w, i) => sum + (w - (back[i] ?? 0)) ** 2, 0);
          expect(Math.abs(squaredNorm - norm)).toBeLessThanOrEqual(1e-5 * norm);
          // Both sides round every w in f32: relative to the norm, not to the error.
          const difference = Math.abs(Math.sqrt(squaredError) - Math.sqrt(error));
          expect(difference).toBeLessThanOrEqual(5e-7 * Math.sqrt(norm) + 1e-6 * Math.sqrt(error));
        }),
        { numRuns: 40 },
      );
    });
  });

  test('keeps the integers of Q8_0 and Q4_0', () => {
    const q8 = Uint8Array.from({ length: 34 }, (_, i) => [0x01, 0x80, 0x80, 0x7f, 0, 0xff][i] ?? i);
    const eight = emptyTarget(32, 8);
    convertToBlocks(q8, 'Q8_0', 8, eight, 'x');
    expect([...eight.values.subarray(0, 5)]).toEqual([0, 255, 128, 127, 134]);
    expect([...eight.scales]).toEqual([-(2 ** -24)]);

    // Byte j holds the elements j and j + 16.
    const q4 = Uint8Array.from({ length: 18 }, (_, i) => (i < 2 ? [0x00, 0x3c][i] : i - 2) ?? 0);
    q4[2] = 0xf0;
    const four = emptyTarget(32, 4);
    convertToBlocks(q4, 'Q4_0', 4, four, 'x', 0.5);
    expect([...four.values]).toEqual([
      ...[0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe],
      ...[0x0f, 0, 0, 0, 0, 0, 0, 0],
    ]);
    expect([...four.scales]).toEqual([0.5]);
  });

  test('applies the factor of an fp8 checkpoint', async () => {
    const { bytes, factor } = await storedElements('fp8.weight');
    const golden = await openGolden('formats/element-types-f32.safetensors');
    const expected = await golden.read('fp8.weight');
    const target = emptyTarget(48 * 64, 8);
    const error = convertToBlocks(bytes, 'F8_E4M3', 8, target, 'fp8.weight', factor);
    expect({ bits: 8, ...target }).toEqual(quantiseBlocks(expected, 48, 64, 8));
    const back = dequantiseBlocks({ bits: 8, ...target }, 48, 64);
    const rms = Math.sqrt(error.squaredError / error.squaredNorm);
    expect(rms / relativeRms(back, expected)).toBeCloseTo(1, 4);
  });

  test('many chunks and views into larger buffers are as good as one', () => {
    const count = 5 * 4096 + 96;
    const weight = Float32Array.from(
      { length: count },
      (_, i) => Math.sin(i * 1.7) * (1 + (i % 7)),
    );
    const padded = new Uint8Array(4 * count + 1);
    padded.set(new Uint8Array(weight.buffer), 1);
    for (const bits of widths) {
      const whole = emptyTarget(count + 64, bits);
      const values = whole.values.subarray(4 * bits, -4 * bits);
      const scales = whole.scales.subarray(1, -1);
      convertToBlocks(padded.subarray(1), 'F32', bits, { values, scales }, 'x');
      for (let start = 0; start < count; start += 32) {
        const one = emptyTarget(32, bits);
        const block = new Uint8Array(weight.buffer, 4 * start, 128);
        convertToBlocks(block, 'F32', bits, one, 'x');
        expect(one.scales[0]).toBe(scales[start / 32]);
        expect(one.values).toEqual(values.slice((start * bits) / 8, ((start + 32) * bits) / 8));
      }
      expect(whole.scales.at(0)).toBe(0);
      expect(whole.scales.at(-1)).toBe(0);
    }
  });

  describe.each(ggmlTypes)('%s with a scale that is no number', (dtype) => {
    test.each(widths)('is refused at %i bits', (bits) => {
      const { elements, bytes } = elementType(dtype, 'x');
      for (const offset of scaleOffsets[dtype] ?? []) {
        for (const half of [0x7c00, 0xfc00, 0x7e00]) {
          const source = new Uint8Array(3 * bytes).fill(0x11);
          new DataView(source.buffer).setUint16(bytes + offset, half, true);
          expect(() =>
            convertToBlocks(source, dtype, bits, emptyTarget(3 * elements, bits), 'a.weight'),
          ).toThrow(
            expect.objectContaining({
              code: 'MODEL_FILE_INVALID',
              message: expect.stringContaining('a.weight'),
            }),
          );
        }
      }
    });
  });

  test.each(widths)('NaN and infinity are refused wherever they stand, at %i bits', (bits) => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      for (let at = 0; at < 96; at++) {
        for (const rest of [0, 1]) {
          const weight = new Float32Array(96).fill(rest);
          weight[at] = bad;
          const source = new Uint8Array(weight.buffer);
          expect(() => convertToBlocks(source, 'F32', bits, emptyTarget(96, bits), 'x')).toThrow(
            expect.objectContaining({ code: 'MODEL_FILE_INVALID' }),
          );
        }
      }
    }
    const q = new Uint8Array(bits === 8 ? 34 : 18).fill(0x11);
    expect(() =>
      convertToBlocks(q, bits === 8 ? 'Q8_0' : 'Q4_0', bits, emptyTarget(32, bits), 'x', Infinity),
    ).toThrow(expect.objectContaining({ code: 'MODEL_FILE_INVALID' }));
  });

  test('refuses a target of another length', () => {
    const source = new Uint8Array(34);
    expect(() => convertToBlocks(source, 'Q8_0', 8, emptyTarget(64, 8), 'x')).toThrow(TypeError);
    expect(() => convertToBlocks(source, 'Q8_0', 8, emptyTarget(32, 4), 'x')).toThrow(TypeError);
    expect(() => convertToBlocks(new Uint8Array(40), 'F16', 8, emptyTarget(0, 8), 'x')).toThrow(
      TypeError,
    );
  });
});
