import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { decodeElements } from '../convert/elements';
import { quantiseBlocks } from '../convert/quantise';
import { installComponent } from '../store/install';
import { openStoredComponent } from '../store/stored';
import { diskStore } from '../store/testing/disk';
import { testSource } from '../store/testing/source';
import { f32, safetensorsBytes, type TestTensor } from '../testing/files';
import { openSafetensors } from './checkpoint';
import { locateTensors } from './located';
import { blobFile } from './source';
import { openTensorFile } from './tensor-file';

const temporary = temporaryFolder();
const [rows, columns] = [24, 64];
/** All codes of E4M3 but the two that stand for no number. */
const codes = Uint8Array.from({ length: rows * columns }, (_, i) => (i * 37) % 254);
const fp8 = codes.map((code) => (code % 128 === 127 ? 0 : code));
const factors = Array.from({ length: rows }, (_, row) => 2 ** -(row % 9) * (1 + row / 64));
const values = decodeElements(fp8, 'F8_E4M3', 'w').map((value, i) =>
  Math.fround(value * Math.fround(factors[Math.floor(i / columns)] ?? 0)),
);
const weight = { dtype: 'F8_E4M3', shape: [rows, columns], data: fp8 };

describe.each([
  ['scale_weight', [rows]],
  ['weight_scale', [rows, 1]],
  ['scale_weight', [rows, 1, 1]],
])('fp8 with the scale of each row in %s %j', (name, shape) => {
  const bytes = safetensorsBytes({ [`l.${name}`]: f32(shape, factors), 'l.weight': weight });

  test('is read as its values, whole and by rows', async () => {
    const checkpoint = await openSafetensors(blobFile('x.safetensors', new Blob([bytes])));
    expect([...checkpoint.names()]).toEqual(['l.weight']);
    expect(await checkpoint.read('l.weight')).toEqual(values);
    const some = [23, 2, 3, 2];
    expect(await checkpoint.readRows('l.weight', some)).toEqual(
      Float32Array.from(some.flatMap((row) => [...values.subarray(row * 64, row * 64 + 64)])),
    );
  });

  test.each([100, 700, 1e6])('is stored as its values are, in units of %d bytes', async (limit) => {
    const folder = diskStore(temporary());
    const source = testSource('x.safetensors', bytes);
    const make = (form: 'int8' | 'f32' | 'compact') => ({
      component: 'transformer',
      tensors: [{ name: 'l', source: 'l.weight', shape: [rows, columns], pack: 'a.bin', form }],
    });
    for (const form of ['int8', 'f32', 'compact'] as const) {
      await folder.clear();
      await installComponent({
        folder,
        component: 'transformer',
        precision: 'int8',
        recipe: make(form),
        sources: [source],
        tensors: locateTensors([await openTensorFile(source)]),
        signal: new AbortController().signal,
        limit,
      });
      const stored = await openStoredComponent(folder);
      if (form === 'f32') expect(await stored.read('l')).toEqual(values);
      else {
        const blocks = quantiseBlocks(values, rows, columns, 8);
        expect((await stored.readStored(['l'])).get('l')).toEqual(blocks);
      }
    }
  });
});

test('16-bit weights with a scale do not write over what follows them', async () => {
  const half = { dtype: 'F16', shape: [2, 32], data: new Uint8Array(128).fill(0x3c) };
  const next = f32([2, 32], Array(64).fill(7));
  const tensors = { 'a.weight': half, 'a.weight_scale': f32([1], [2]), 'b.weight': next };
  const folder = diskStore(temporary());
  const source = testSource('x.safetensors', safetensorsBytes(tensors));
  await installComponent({
    folder,
    component: 'vae',
    precision: 'int8',
    recipe: {
      component: 'vae',
      tensors: ['a', 'b'].map((name) => ({
        name,
        source: `${name}.weight`,
        shape: [2, 32],
        pack: 'a.bin',
        form: 'compact',
      })),
    },
    sources: [source],
    tensors: locateTensors([await openTensorFile(source)]),
    signal: new AbortController().signal,
  });
  const stored = await openStoredComponent(folder);
  expect(await stored.read('b')).toEqual(next.data);
  expect((await stored.read('a'))[0]).toBeCloseTo(2 * 1.0586, 2);
});

describe('other quantised forms are refused from the header, by name', () => {
  const bytes = (dtype: string, shape: readonly number[]): TestTensor => ({
    dtype,
    shape,
    data: new Uint8Array(shape.reduce((product, n) => product * n, 1)),
  });
  const marker = { 'l.comfy_quant': bytes('U8', [18]) };
  /** The form, and the tensors as the tools write them. */
  test.each<[string, Record<string, TestTensor>]>([
    [
      'in fp8 with a scale for each block',
      { 'l.weight': weight, 'l.scale_weight': f32([24, 2, 1]) },
    ],
    [
      'in fp8 with a scale for each block',
      { 'l.weight': weight, 'l.weight_scale_inv': f32([1, 2]) },
    ],
    ['as MXFP8', { ...marker, 'l.weight': weight, 'l.weight_scale': bytes('U8', [24, 2]) }],
    ['as MXFP8', { 'l.weight': weight, 'l.weight_scale': bytes('F8_E8M0', [24, 2]) }],
    ['as MXFP4', { 'l.weight': bytes('U8', [24, 32]), 'l.weight_scale': bytes('U8', [24, 2]) }],
    [
      'as NVFP4',
      {
        ...marker,
        'l.weight': bytes('U8', [24, 32]),
        'l.weight_scale': bytes('F8_E4M3', [24, 4]),
        'l.weight_scale_2': f32([]),
      },
    ],
    ['as int8', { ...marker, 'l.weight': bytes('I8', [24, 64]), 'l.weight_scale': f32([]) }],
    ['as int8', { 'l.weight': bytes('I8', [24, 64]), 'l.weight_scale': f32([24, 1]) }],
    ['by bitsandbytes', { 'l.weight': bytes('U8', [768, 1]), 'l.weight.absmax': f32([24]) }],
    ['by bitsandbytes', { 'l.weight': bytes('I8', [24, 64]), 'l.SCB': f32([24]) }],
    ['as GPTQ, AWQ or SVDQuant do it', { 'l.qweight': bytes('U8', [8, 24]) }],
  ])('%s', async (form, tensors) => {
    const file = blobFile('x.safetensors', new Blob([safetensorsBytes(tensors)]));
    await expect(openSafetensors(file)).rejects.toMatchObject({
      code: 'TENSOR_DTYPE',
      message: expect.stringContaining(`x.safetensors is quantised ${form} (l.`),
      remedy: expect.stringMatching(/fp8 with one scale for a tensor or a row, or GGUF/),
    });
  });
});
