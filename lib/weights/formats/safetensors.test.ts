import { describe, expect, test } from 'vitest';
import { decodeElements } from '../convert/elements';
import { checkpointFrom, f32, safetensorsBytes, safetensorsFrom } from '../testing/files';
import { openSafetensors } from './checkpoint';
import { readSafetensorsHeader } from './safetensors';
import { blobFile, type WeightFile } from './source';

function fileOf(bytes: Uint8Array<ArrayBuffer>): WeightFile {
  return blobFile('t.safetensors', new Blob([bytes]));
}

const four = new Float32Array([1, 2, 3, 4]);
const entry = (offsets: number[], shape: unknown = [4], dtype = 'F32') => ({
  dtype,
  shape,
  data_offsets: offsets,
});

describe('readSafetensorsHeader', () => {
  test('reads tensors and metadata', async () => {
    const bytes = safetensorsBytes({ a: f32([2, 2], [1, 2, 3, 4]), b: f32([0]) }, { format: 'pt' });
    const { tensors, metadata } = await readSafetensorsHeader(fileOf(bytes));
    expect([...tensors.keys()]).toEqual(['a', 'b']);
    expect(tensors.get('a')?.shape).toEqual([2, 2]);
    expect(metadata.get('format')).toBe('pt');
  });

  test('reads a scalar and a name that objects have anyway', async () => {
    const checkpoint = await checkpointFrom({ constructor: f32([], [7]) });
    expect(checkpoint.shape('constructor')).toEqual([]);
    expect(await checkpoint.read('constructor')).toEqual(new Float32Array([7]));
    expect(checkpoint.has('toString')).toBe(false);
  });

  const damaged: [string, Uint8Array<ArrayBuffer>][] = [
    ['a header length of no sense', new Uint8Array([255, 255, 255, 255, 255, 255, 255, 255, 0])],
    ['a header that is no JSON', safetensorsFrom('{"a":', [])],
    ['a header that is no table', safetensorsFrom([1], [])],
    ['an entry without a shape', safetensorsFrom({ a: { dtype: 'F32' } }, [])],
    ['metadata that is no text', safetensorsFrom({ __metadata__: { a: 1 } }, [])],
    ['a negative offset', safetensorsFrom({ a: entry([-16, 0]) }, [four])],
    ['a fractional dimension', safetensorsFrom({ a: entry([0, 16], [2.5]) }, [four])],
    ['bytes that end before they start', safetensorsFrom({ a: entry([16, 0]) }, [four])],
    ['fewer bytes than the shape needs', safetensorsFrom({ a: entry([0, 16], [5]) }, [four])],
    ['another type than the bytes', safetensorsFrom({ a: entry([0, 16], [4], 'F16') }, [four])],
    [
      'overlapping tensors',
      safetensorsFrom({ a: entry([0, 16]), b: entry([8, 24]) }, [four, four]),
    ],
    ['a gap', safetensorsFrom({ a: entry([8, 24]) }, [four, four])],
    ['bytes after the last tensor', safetensorsFrom({ a: entry([0, 16]) }, [four, four])],
  ];
  test.each(damaged)('refuses %s', async (_, bytes) => {
    await expect(readSafetensorsHeader(fileOf(bytes))).rejects.toMatchObject({
      code: 'MODEL_FILE_INVALID',
      message: expect.stringContaining('t.safetensors'),
    });
  });

  test('recognises a file that ends too early, wherever it ends', async () => {
    const whole = safetensorsBytes({ a: f32([4], [1, 2, 3, 4]) });
    for (const length of [0, 4, 20, whole.length - 16, whole.length - 1]) {
      await expect(readSafetensorsHeader(fileOf(whole.slice(0, length)))).rejects.toMatchObject({
        code: 'MODEL_FILE_TRUNCATED',
      });
    }
  });
});

describe('element types', () => {
  test('bytes at an odd address are read as well', () => {
    const padded = new Uint8Array(17);
    padded.set(new Uint8Array(four.buffer), 1);
    expect(decodeElements(padded.subarray(1), 'F32', 'x')).toEqual(four);
  });

  test('integers are listed but not read', async () => {
    const bytes = new Uint8Array(16);
    const file = fileOf(safetensorsFrom({ n: entry([0, 16], [2], 'I64') }, [bytes]));
    await expect((await openSafetensors(file)).read('n')).rejects.toMatchObject({
      code: 'TENSOR_DTYPE',
    });
  });
});
