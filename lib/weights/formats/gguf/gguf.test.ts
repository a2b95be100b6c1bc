import { GGMLQuantizationType, gguf } from '@huggingface/gguf';
import { describe, expect, test } from 'vitest';
import { diskFile, goldens } from '../../testing/files';
import {
  countedFile,
  type GgufTestFile,
  ggufBytes,
  ggufHeader,
  list,
  text,
  u32,
  virtualFile,
} from '../../testing/gguf';
import { blobFile } from '../source';
import { readGgufHeader } from './index';

const read = (file: GgufTestFile) =>
  readGgufHeader(blobFile('x.gguf', new Blob([ggufBytes(file)])));
const f32 = (name: string, shape: readonly number[]) => ({
  name,
  shape,
  type: 0,
  bytes: 4 * shape.reduce((product, n) => product * n, 1),
});

describe.each(['ggml-types', 'transformer-Q8_0', 'text-encoder-Q8_0'])('%s.gguf', (name) => {
  test('is read as @huggingface/gguf reads it', async () => {
    const path = `${goldens}formats/${name}.gguf`;
    const ours = await readGgufHeader(await diskFile(path));
    const theirs = await gguf(path, { allowLocalFile: true });
    expect(ours.version).toBe(3);
    expect(BigInt(ours.headerBytes)).toBe(theirs.tensorDataOffset);
    const { version, tensor_count, kv_count, ...metadata } = theirs.metadata;
    expect(Object.fromEntries(ours.metadata)).toEqual(metadata);
    expect(
      [...ours.tensors].map(([tensor, { shape, dtype, start }]) => ({
        tensor,
        shape,
        dtype,
        start,
      })),
    ).toEqual(
      theirs.tensorInfos.map(({ name: tensor, shape, dtype, offset }) => ({
        tensor,
        shape: shape.map(Number).toReversed(),
        dtype: GGMLQuantizationType[dtype],
        start: Number(theirs.tensorDataOffset + offset),
      })),
    );
  });
});

describe('readGgufHeader', () => {
  test('dimensions in PyTorch’s order, a five-dimensional kernel included', async () => {
    const { tensors } = await read({ tensors: [f32('conv', [64, 48, 1, 2, 2]), f32('b', [3])] });
    expect(tensors.get('conv')?.shape).toEqual([64, 48, 1, 2, 2]);
    expect(tensors.get('b')?.shape).toEqual([3]);
  });

  test('values of every type', async () => {
    const { metadata } = await read({
      metadata: {
        text: text('Grüße'),
        u8: { type: 0, value: 200 },
        i8: { type: 1, value: -3 },
        u16: { type: 2, value: 60_000 },
        i16: { type: 3, value: -5 },
        u32: u32(4_000_000_000),
        i32: { type: 5, value: -7 },
        f32: { type: 6, value: 0.5 },
        yes: { type: 7, value: 1 },
        u64: { type: 10, value: 2n ** 40n },
        huge: { type: 10, value: 2n ** 60n },
        i64: { type: 11, value: -9n },
        f64: { type: 12, value: 0.1 },
        words: list(8, ['a', '', '▁b']),
        scores: list(6, [0.25, -1]),
        nested: { type: 9, items: 9, value: [list(5, [1]), list(8, ['x'])] },
        after: u32(1),
      },
    });
    expect(Object.fromEntries(metadata)).toEqual({
      text: 'Grüße',
      u8: 200,
      i8: -3,
      u16: 60_000,
      i16: -5,
      u32: 4_000_000_000,
      i32: -7,
      f32: 0.5,
      yes: true,
      u64: 2 ** 40,
      huge: 2n ** 60n,
      i64: -9,
      f64: 0.1,
      words: ['a', '', '▁b'],
      scores: new Float32Array([0.25, -1]),
      after: 1,
    });
  });

  test('the alignment that the file names, and version 2', async () => {
    const file = {
      version: 2,
      alignment: 128,
      metadata: { 'general.alignment': u32(128) },
      tensors: [f32('a', [3]), f32('b', [5])],
    };
    const { version, headerBytes, tensors } = await read(file);
    expect(version).toBe(2);
    expect(headerBytes % 128).toBe(0);
    expect(tensors.get('b')?.start).toBe(headerBytes + 128);
  });

  test('original shapes are restored', async () => {
    const name = 'patch_embedding.weight';
    const original = (dims: number[]) => ({
      metadata: { [`comfy.gguf.orig_shape.${name}`]: list(5, dims) },
      tensors: [f32(name, [24, 256])],
    });
    const { tensors } = await read(original([32, 48, 1, 2, 2]));
    expect(tensors.get(name)?.shape).toEqual([32, 48, 1, 2, 2]);
    for (const wrong of [[31, 48, 1, 2, 2], [], [-32, -48, 1, 2, 2], Array(9).fill(1)]) {
      await expect(read(original(wrong))).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
    }
  });

  test('a tensor of an unreadable type is listed', async () => {
    const { tensors } = await read({
      tensors: [
        { name: 'iq', shape: [256], type: 23, bytes: 136 },
        { name: 'new', shape: [7, 7], type: 77, bytes: 50 },
        f32('last', [1]),
      ],
    });
    expect(tensors.get('iq')).toMatchObject({ dtype: 'IQ4_XS' });
    expect(tensors.get('new')).toMatchObject({ dtype: 'GGML type 77', shape: [7, 7] });
  });

  const one = [f32('a', [4]), f32('b', [4])];
  const cases: [string, RegExp, GgufTestFile][] = [
    ['version 1', /version 1/, { version: 1 }],
    ['a big-endian file', /big-endian/, { version: 0x03000000 }],
    ['two tensors of one name', /twice/, { tensors: [f32('a', [1]), f32('a', [1])] }],
    [
      'overlapping tensors',
      /overlaps a/,
      { tensors: [f32('a', [64]), { ...f32('b', [4]), offset: 32n }] },
    ],
    ['an offset between the steps', /no multiple/, { tensors: [{ ...f32('a', [4]), offset: 4n }] }],
    [
      'an offset past everything',
      /ends too early/,
      { tensors: [{ ...f32('a', [4]), offset: 2n ** 40n }] },
    ],
    [
      'an offset that overflows',
      /impossible|no multiple/,
      { tensors: [{ ...f32('a', [4]), offset: 2n ** 64n - 32n }] },
    ],
    [
      'a dimension that overflows',
      /impossible/,
      { tensors: [{ ...f32('a', [2 ** 62]), bytes: 0 }] },
    ],
    [
      'dimensions that overflow',
      /impossible/,
      { tensors: [{ ...f32('a', [2 ** 40, 2 ** 40]), bytes: 0 }] },
    ],
    ['too many dimensions', /9 dimensions/, { tensors: [f32('a', Array(9).fill(1))] }],
    [
      'rows that are no whole blocks',
      /no whole blocks of 32/,
      { tensors: [{ name: 'a', shape: [2, 48], type: 8, bytes: 102 }] },
    ],
    [
      'an impossible number of tensors',
      /announces/,
      { tensors: one, counts: { tensors: 2n ** 63n } },
    ],
    [
      'more tensors than there are',
      /ends too early|damaged/,
      { tensors: one, counts: { tensors: 60_000n } },
    ],
    ['an impossible number of values', /announces/, { counts: { values: 2n ** 64n - 1n } }],
    ['an unknown value type', /value type 99/, { metadata: { a: { type: 99, value: 0 } } }],
    ['an alignment of 0', /alignment is 0/, { metadata: { 'general.alignment': u32(0) } }],
    ['an alignment of 3', /alignment is 3/, { metadata: { 'general.alignment': u32(3) } }],
    ['an alignment in words', /alignment is x/, { metadata: { 'general.alignment': text('x') } }],
    ['a name of 2000 bytes', /name is 2000 bytes/, { tensors: [f32('a'.repeat(2000), [1])] }],
    ['deep nesting', /nested/, { metadata: { a: deep(6) } }],
  ];
  test.each(cases)('refuses %s', async (_, message, file) => {
    await expect(read(file)).rejects.toThrow(message);
    await expect(read(file)).rejects.toMatchObject({ name: 'KinoraError' });
  });

  test('a list that announces more than the file holds costs nothing', async () => {
    const bytes = ggufHeader({ metadata: { a: list(6, [1]) } });
    // The list's count: magic and counts 24, key 8 + 1, type 4, item type 4.
    new DataView(bytes.buffer).setBigUint64(41, 2n ** 50n, true);
    const file = countedFile(virtualFile('x', bytes, 10 * 2 ** 30));
    await expect(readGgufHeader(file)).rejects.toThrow(/announces 1125899906842624 numbers/);
    expect(file.bytesRead).toBeLessThanOrEqual(65_536);
  });

  test('a vocabulary of a quarter of a million tokens is read once, and little more', {
    tags: ['full'],
  }, async () => {
    const tokens = Array.from({ length: 256_384 }, (_, i) => `▁token-${i}`);
    const head = ggufHeader({
      metadata: {
        'tokenizer.ggml.tokens': list(8, tokens),
        'tokenizer.ggml.scores': list(6, new Array(tokens.length).fill(-1)),
      },
      tensors: [f32('token_embd.weight', [256_384, 4096])],
    });
    const file = countedFile(virtualFile('umt5.gguf', head, head.length + 4 * 256_384 * 4096));
    const { metadata, headerBytes } = await readGgufHeader(file);
    // One comparison of strings is a hundred times as fast as one of as many entries.
    expect((metadata.get('tokenizer.ggml.tokens') as string[]).join('\n')).toBe(tokens.join('\n'));
    expect(headerBytes).toBe(head.length);
    expect(file.bytesRead).toBeLessThan(head.length + 2 ** 22);
    expect(file.reads).toBeLessThan(12);
  });
});

function deep(levels: number): ReturnType<typeof list> {
  return levels === 0 ? list(5, [1]) : { type: 9, items: 9, value: [deep(levels - 1)] };
}
