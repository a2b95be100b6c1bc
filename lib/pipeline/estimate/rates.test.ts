import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { diskStore } from '../../weights/store/testing/disk';
import { deviceOf, keepPaces, readPaces } from './rates';

const temporary = await mkdtemp(path.join(tmpdir(), 'kinora-rates-'));
afterAll(() => rm(temporary, { recursive: true }));

const newFolder = () => diskStore(path.join(temporary, crypto.randomUUID()));

const paces = { denoise: 2 };

test('paces are kept by device and model', async () => {
  const folder = newFolder();
  expect(await readPaces(folder, 'a')).toEqual({});
  await keepPaces(folder, 'a', { denoise: 2, check: 4 });
  await keepPaces(folder, 'b', { check: 1 });
  await keepPaces(folder, 'a', { denoise: 3 });
  expect(await readPaces(folder, 'a')).toEqual({ denoise: 3, check: 4 });
  expect(await readPaces(folder, 'b')).toEqual({ check: 1 });
});

test('a file that is damaged is as if nothing was measured', async () => {
  const folder = newFolder();
  for (const text of ['{"a', '{}', '[["a",{"denoise":-1}]]', '[null]']) {
    await folder.writeText('rates.json', text);
    expect(await readPaces(folder, 'a')).toEqual({});
  }
  await keepPaces(folder, 'a', paces);
  expect(await readPaces(folder, 'a')).toEqual(paces);
});

test('the devices that were used longest ago are forgotten', async () => {
  const folder = newFolder();
  for (let i = 0; i < 30; i++) await keepPaces(folder, `device ${i}`, paces);
  expect(await readPaces(folder, 'device 29')).toEqual(paces);
  expect(await readPaces(folder, 'device 6')).toEqual(paces);
  expect(await readPaces(folder, 'device 5')).toEqual({});
});

test('a device has paces of its own for each way to compute on it', () => {
  const adapter = { vendor: 'v', architecture: 'a', device: '', description: '' };
  const nameOf = (software: boolean, kernels?: 'exact' | 'runtime') =>
    deviceOf({ adapter, software }, 2, kernels && { kernels }).name;
  expect(nameOf(false)).toBe(nameOf(false, 'exact'));
  expect(nameOf(true)).toBe(nameOf(true, 'runtime'));
  expect(nameOf(false, 'exact')).not.toBe(nameOf(false, 'runtime'));
  expect(deviceOf(null, 2, { kernels: 'exact' }).name).toBe('wasm 2');
});
