import { describe, expect, test } from 'vitest';
import { openCheckpoint } from '../testing/checkpoint';
import {
  checkpointFrom,
  diskFolder,
  f32,
  goldens,
  openGolden,
  patchedFolder,
  safetensorsBytes,
} from '../testing/files';
import { checkTensors, openSafetensors, withAliases } from './checkpoint';
import { blobFile, type WeightFile } from './source';

const model = diskFolder(`${goldens}model`);
const index = 'part/model.safetensors.index.json';
const sharded = (map: Record<string, string>) =>
  patchedFolder(model, {
    [index]: JSON.stringify({ metadata: { total_size: 32 }, weight_map: map }),
    'part/model-1.safetensors': safetensorsBytes({ a: f32([2], [1, 2]), spare: f32([1]) }),
    'part/model-2.safetensors': safetensorsBytes({ b: f32([2], [3, 4]) }),
  });

describe('openCheckpoint', () => {
  test('opens a single file under either usual name', async () => {
    const transformer = await openCheckpoint(model, 'transformer');
    expect(transformer.shape('scale_shift_table')).toEqual([1, 2, 64]);
    expect(transformer.bytes('scale_shift_table')).toBe(512);
    expect(await transformer.read('scale_shift_table')).toHaveLength(128);
    expect((await openCheckpoint(model, 'text_encoder')).has('shared.weight')).toBe(true);
    expect((await openCheckpoint(model, 'text_encoder', 'model')).has('shared.weight')).toBe(true);
  });

  test('joins shards by their index', async () => {
    const folder = sharded({ a: 'model-1.safetensors', b: 'model-2.safetensors' });
    const checkpoint = await openCheckpoint(folder, 'part');
    expect([...checkpoint.names()]).toEqual(['a', 'b']);
    expect([...(await checkpoint.read('b'))]).toEqual([3, 4]);
  });

  test.each([
    ['no weights', 'MODEL_FILE_MISSING', model],
    ['a missing shard', 'MODEL_FILE_MISSING', sharded({ a: 'model-9.safetensors' })],
    ['a tensor that its shard lacks', 'TENSOR_MISSING', sharded({ b: 'model-1.safetensors' })],
    ['a shard outside the folder', 'MODEL_FILE_INVALID', sharded({ a: '../../x.safetensors' })],
    ['an index of no sense', 'MODEL_FILE_INVALID', patchedFolder(model, { [index]: '{}' })],
    ['an index that is no JSON', 'MODEL_FILE_INVALID', patchedFolder(model, { [index]: '{' })],
  ])('refuses %s', async (_, code, folder) => {
    await expect(openCheckpoint(folder, 'part')).rejects.toMatchObject({ code });
  });

  test('refuses a truncated file', async () => {
    const path = 'vae/diffusion_pytorch_model.safetensors';
    const file = await model.open(path);
    const half = new Uint8Array(await file.read(0, file.size / 2));
    const folder = patchedFolder(model, { [path]: half });
    await expect(openCheckpoint(folder, 'vae')).rejects.toMatchObject({
      code: 'MODEL_FILE_TRUNCATED',
      message: expect.stringContaining(path),
    });
  });
});

describe('reading', () => {
  test('a missing tensor is named', async () => {
    const checkpoint = await checkpointFrom({ a: f32([1]) });
    await expect(checkpoint.read('nothing')).rejects.toMatchObject({
      code: 'TENSOR_MISSING',
      message: expect.stringContaining('nothing'),
    });
    expect(() => checkpoint.shape('nothing')).toThrow('nothing');
  });

  test('rows come in the order asked for and are fetched alone, neighbours together', async () => {
    const values = Array.from({ length: 60 }, (_, i) => i);
    const bytes = safetensorsBytes({ pad: f32([3]), table: f32([20, 3], values) });
    const file = recording(blobFile('t', new Blob([bytes])));
    const checkpoint = await openSafetensors(file);
    file.reads.length = 0;

    const rows = await checkpoint.readRows('table', [7, 2, 3, 19, 7, 4]);
    expect([...rows]).toEqual([21, 22, 23, 6, 7, 8, 9, 10, 11, 57, 58, 59, 21, 22, 23, 12, 13, 14]);
    expect(file.reads.map(([start, end]) => end - start)).toEqual([36, 12, 12]);
    expect(await checkpoint.readRows('table', [])).toHaveLength(0);
    await expect(checkpoint.readRows('table', [20])).rejects.toThrow(RangeError);
    await expect(checkpoint.readRows('table', [-1])).rejects.toThrow(RangeError);
  });
});

describe('withAliases', () => {
  test('finds a tensor under its other name, and prefers its own', async () => {
    const aliases = new Map([['shared', 'tied']]);
    const tied = withAliases(await checkpointFrom({ tied: f32([1], [5]) }), aliases);
    expect(tied.has('shared')).toBe(true);
    expect([...(await tied.read('shared'))]).toEqual([5]);
    expect([...(await tied.readRows('shared', [0]))]).toEqual([5]);
    const both = await checkpointFrom({ tied: f32([1], [5]), shared: f32([1], [6]) });
    expect([...(await withAliases(both, aliases).read('shared'))]).toEqual([6]);
    expect(withAliases(await checkpointFrom({ a: f32([1]) }), aliases).has('shared')).toBe(false);
  });
});

describe('checkTensors', () => {
  const expected = new Map([
    ['a', [2, 3]],
    ['b', [4]],
  ]);

  test('accepts what fits, and more', async () => {
    const checkpoint = await checkpointFrom({ a: f32([2, 3]), b: f32([4]), c: f32([1]) });
    expect(() => checkTensors(checkpoint, expected, 'vae')).not.toThrow();
  });

  test('names a missing tensor and a wrong shape', async () => {
    const lacking = await checkpointFrom({ a: f32([2, 3]) });
    expect(() => checkTensors(lacking, expected, 'vae')).toThrow(
      expect.objectContaining({
        code: 'TENSOR_MISSING',
        message: 'vae lacks the tensor b [4].',
      }),
    );
    for (const shape of [[3, 2], [6], [2, 3, 1]]) {
      const wrong = await checkpointFrom({ a: f32(shape), b: f32([4]) });
      expect(() => checkTensors(wrong, expected, 'vae')).toThrow(
        expect.objectContaining({
          code: 'TENSOR_SHAPE',
          message: `a of the vae is [${shape}], but its configuration needs [2,3].`,
        }),
      );
    }
  });
});

test('a LoRA file opens with its metadata', async () => {
  const checkpoint = await openGolden('loras/a_peft.safetensors');
  expect(checkpoint.metadata).toBeInstanceOf(Map);
  expect([...checkpoint.names()]).toHaveLength(40);
});

function recording(file: WeightFile): WeightFile & { reads: [number, number][] } {
  const reads: [number, number][] = [];
  return {
    name: file.name,
    size: file.size,
    reads,
    read(start, end) {
      reads.push([start, end]);
      return file.read(start, end);
    },
  };
}
