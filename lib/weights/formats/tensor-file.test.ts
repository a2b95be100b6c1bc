import { describe, expect, test } from 'vitest';
import { dequantiseBlocks } from '../convert/quantise';
import { openCheckpoint } from '../testing/checkpoint';
import {
  diskFile,
  diskFolder,
  f32,
  goldens,
  patchedFolder,
  safetensorsBytes,
} from '../testing/files';
import { ggufBytes, ggufHeader, text, u32 } from '../testing/gguf';
import { checkpointOf, openTensorFiles } from './checkpoint';
import { locateTensors } from './located';
import { blobFile } from './source';
import { openTensorFile } from './tensor-file';

const fileOf = (content: BlobPart, name = 'x') => blobFile(name, new Blob([content]));
const golden = async (path: string) => openTensorFile(await diskFile(`${goldens}formats/${path}`));
const ggmlTypes = async () =>
  checkpointOf('types', locateTensors([await golden('ggml-types.gguf')]));

describe('openTensorFile', () => {
  test('knows the format by content, not by name', async () => {
    const safetensors = await openTensorFile(
      fileOf(safetensorsBytes({ a: f32([2]) }, { base: 'x' }), 'a.gguf'),
    );
    expect(safetensors).toMatchObject({ format: 'safetensors', gguf: null });
    expect(safetensors.metadata.get('base')).toBe('x');
    expect(safetensors.headerBytes).toBe(safetensors.tensors.get('a')?.start);
    const metadata = { 'general.architecture': text('wan'), 'general.file_type': u32(7) };
    const gguf = await openTensorFile(fileOf(ggufHeader({ metadata }), 'a.safetensors'));
    expect(gguf.format).toBe('gguf');
    expect([...gguf.metadata]).toEqual([['general.architecture', 'wan']]);
    expect(gguf.gguf?.metadata.get('general.file_type')).toBe(7);
  });

  test.each<[string, string | Uint8Array<ArrayBuffer>, RegExp]>([
    ['a bare pickle', Uint8Array.of(0x80, 2, 0x8a, 10, 0, 0, 0, 0, 0), /PyTorch file of before/],
    ['a Git LFS pointer', 'version https://git-lfs.github.com/spec/v1\noid', /Git LFS/],
    ['a web page', '<!doctype html><html>', /web page/],
    ['text', 'hello, this is no file of weights', /does not start like/],
  ])('%s is named', async (_, content, message) => {
    const opening = openTensorFile(fileOf(content));
    await expect(opening).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
    await expect(openTensorFile(fileOf(content))).rejects.toThrow(message);
  });

  test.each([0, 1, 3, 7])('%d bytes are too few', async (length) => {
    const opening = openTensorFile(fileOf(new Uint8Array(length)));
    await expect(opening).rejects.toMatchObject({ code: 'MODEL_FILE_TRUNCATED' });
  });
});

describe('reading GGUF', () => {
  test('8-bit and 4-bit blocks come as the file has them, others as f32', async () => {
    const checkpoint = await ggmlTypes();
    const stored = await checkpoint.readStored(['Q8_0', 'Q4_0', 'Q5_0', 'F32']);
    const q8 = stored.get('Q8_0');
    if (!q8 || q8 instanceof Float32Array || q8.bits !== 8) throw new Error('no 8-bit blocks');
    const raw = await golden('ggml-types.gguf');
    const entry = raw.tensors.get('Q8_0');
    const bytes = await raw.file.read(entry?.start ?? 0, entry?.end ?? 0);
    // A block is a half as scale and 32 signed bytes; ours are the same with 128 added.
    const quants = bytes.filter((_, i) => i % 34 >= 2).map((byte) => byte ^ 0x80);
    expect(q8.values).toEqual(quants);
    expect(dequantiseBlocks(q8, 6, 512)).toEqual(await checkpoint.read('Q8_0'));
    expect(stored.get('Q4_0')).toMatchObject({ bits: 4 });
    expect(stored.get('Q5_0')).toBeInstanceOf(Float32Array);
    expect(stored.get('F32')).toBeInstanceOf(Float32Array);
  });

  test.each(['Q8_0', 'Q4_K', 'Q6_K', 'BF16'])(
    'rows of %s are the rows of the whole',
    async (name) => {
      const checkpoint = await ggmlTypes();
      const whole = await checkpoint.read(name); // [6, 512]
      const rows = await checkpoint.readRows(name, [5, 1, 2, 1]);
      const expected = [5, 1, 2, 1].flatMap((row) => [
        ...whole.subarray(row * 512, row * 512 + 512),
      ]);
      expect([...rows]).toEqual(expected);
    },
  );

  test('rows that blocks run across are refused, not read wrongly', async () => {
    const metadata = {
      'comfy.gguf.orig_shape.w': {
        type: 9,
        items: 5,
        value: [4, 16].map((value) => ({ type: 5, value })),
      },
    };
    const bytes = ggufBytes({
      metadata,
      tensors: [{ name: 'w', shape: [2, 32], type: 8, bytes: 68 }],
    });
    const checkpoint = checkpointOf('x', locateTensors([await openTensorFile(fileOf(bytes))]));
    expect(checkpoint.shape('w')).toEqual([4, 16]);
    expect((await checkpoint.readStored(['w'])).get('w')).toBeInstanceOf(Float32Array);
    await expect(checkpoint.readRows('w', [1])).rejects.toThrow(/no whole blocks of 32/);
  });

  test('a type that cannot be read is refused when it is read', async () => {
    const bytes = ggufBytes({ tensors: [{ name: 'w', shape: [256], type: 23, bytes: 136 }] });
    const checkpoint = checkpointOf('x', locateTensors([await openTensorFile(fileOf(bytes))]));
    expect(checkpoint.dtype('w')).toBe('IQ4_XS');
    for (const reading of [
      checkpoint.read('w'),
      checkpoint.readStored(['w']),
      checkpoint.readRows('w', [0]),
    ]) {
      await expect(reading).rejects.toMatchObject({ code: 'TENSOR_DTYPE' });
    }
  });

  test('a component’s folder may hold a GGUF file', async () => {
    const bytes = ggufBytes({ tensors: [{ name: 'w', shape: [2], type: 0, bytes: 8 }] });
    const folder = patchedFolder(diskFolder(goldens), { 'part/model.gguf': bytes });
    expect([...(await openCheckpoint(folder, 'part')).names()]).toEqual(['w']);
    const [file] = await openTensorFiles(folder, 'part');
    expect(file?.format).toBe('gguf');
  });
});

describe('scales of fp8 weights', () => {
  const scaled = (scale: number) =>
    safetensorsBytes({
      'x.weight': { dtype: 'F8_E4M3', shape: [2, 2], data: Uint8Array.of(0x38, 0xb8, 0x40, 0) },
      'x.scale_weight': f32([1], [scale]),
      'lone.scale_weight': f32([1], [3]),
    });

  test('are multiplied in, by row as well, and listed no more', async () => {
    const file = await openTensorFile(fileOf(scaled(0.5)));
    const checkpoint = checkpointOf('x', locateTensors([file]));
    expect([...checkpoint.names()]).toEqual(['x.weight', 'lone.scale_weight']);
    expect([...(await checkpoint.read('x.weight'))]).toEqual([0.5, -0.5, 1, 0]);
    expect([...(await checkpoint.readRows('x.weight', [1]))]).toEqual([1, 0]);
    const stored = await checkpoint.readStored(['x.weight']);
    expect(stored.get('x.weight')).toEqual(Float32Array.of(0.5, -0.5, 1, 0));
  });

  test.each([Number.NaN, Number.POSITIVE_INFINITY])('a scale of %d is refused', async (scale) => {
    const file = await openTensorFile(fileOf(scaled(scale)));
    const checkpoint = checkpointOf('x', locateTensors([file]));
    await expect(checkpoint.read('x.weight')).rejects.toThrow(/scale of x\.weight/);
  });
});
