import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { compactFile, diskFile, goldens } from '../testing/files';
import { checkpointOf } from './checkpoint';
import { locateTensors } from './located';
import { blobFile } from './source';
import { openTensorFile } from './tensor-file';

test('a state dict that PyTorch saved has its names, shapes and numbers', async () => {
  const file = await openTensorFile(await diskFile(compactFile));
  expect(file.format).toBe('torch');
  const checkpoint = checkpointOf('compact', locateTensors([file]));
  expect([...checkpoint.names()]).toHaveLength(8);
  expect(checkpoint.shape('params.body.4.weight')).toEqual([48, 2, 3, 3]);
  // As PyTorch prints them.
  expect((await checkpoint.read('params.body.0.bias'))[0]).toBeCloseTo(-0.15206493, 7);
  const weights = await checkpoint.read('params.body.4.weight');
  expect(weights.reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(-0.99440878, 5);
});

test('a state dict below the wrappers of a training has its own names, and what lies beside it is left out', async () => {
  // {epoch, lr, state_dict: {gen_model: {…}, disc_model: {…}}, optimizer: {state: {0: {…}}, param_groups: […]}}
  const file = await openTensorFile(await diskFile(`${goldens}formats/light-decoder.pth`));
  expect(file.tensors.size).toBe(198);
  expect(file.tensors.get('decoder.conv_in.weight')?.shape).toEqual([16, 48, 3, 3, 3]);
  expect([...file.tensors.keys()].filter((name) => /optimizer|disc|gen_model/.test(name))).toEqual(
    [],
  );
});

/** The fixture with a part of its bytes replaced by as many others. */
async function changed(from: string, to: string) {
  const text = (await readFile(compactFile)).toString('latin1');
  expect(text).toContain(from);
  return openTensorFile(
    blobFile('a.pth', new Blob([Buffer.from(text.replace(from, to), 'latin1')])),
  );
}

test.each([
  [
    'a class that runs code',
    'ctorch._utils\n_rebuild_tensor_v2',
    `cposix\nsystem${'_'.repeat(19)}`,
    /more than a table.*posix/,
  ],
  ['an instruction that no table needs', '}q\0X', '}q\0\x81', /instruction/],
  ['a storage of another size', 'K6t', 'K7t', /no storage of 55/],
  ['a tensor beyond its storage', 'K6t', 'K5t', /beyond its storage/],
  ['a transposed tensor', 'K\x1bK\tK\x03K\x01t', 'K\x1bK\tK\x01K\x03t', /transposed/],
  ['two tensors of the same elements', 'X\x01\0\0\x002', 'X\x01\0\0\x001', /overlaps/],
  ['a compressed record', 'PK\x01\x02\0\0\0\0\b\b\0\0', 'PK\x01\x02\0\0\0\0\b\b\b\0', /compressed/],
])('%s is refused', async (_, from, to, message) => {
  const opening = changed(from, to);
  await expect(opening).rejects.toMatchObject({ code: 'MODEL_FILE_INVALID' });
  await expect(opening).rejects.toThrow(message);
});
