import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { diskStore } from '../../weights/store/testing/disk';
import { deviceOf, keepRates, mergeRates, readRates } from './rates';

const temporary = await mkdtemp(path.join(tmpdir(), 'kinora-rates-'));
afterAll(() => rm(temporary, { recursive: true }));

const newFolder = () => diskStore(path.join(temporary, crypto.randomUUID()));

const rates = { denoise: { perUnit: 2, startup: 4 } };

test('rates are kept by device and model, and half of a new measurement counts', async () => {
  const folder = newFolder();
  expect(await readRates(folder, 'a')).toEqual({});
  await keepRates(folder, 'a', rates);
  await keepRates(folder, 'b', { check: { perUnit: 1, startup: 0 } });
  await keepRates(folder, 'a', { denoise: { perUnit: 4, startup: 0 } });
  expect(await readRates(folder, 'a')).toEqual({ denoise: { perUnit: 3, startup: 2 } });
  expect(await readRates(folder, 'b')).toEqual({ check: { perUnit: 1, startup: 0 } });
  expect(mergeRates(rates, {})).toEqual(rates);
});

test('a file that is damaged is as if nothing was measured', async () => {
  const folder = newFolder();
  for (const text of ['{"a', '{}', '[["a",{"denoise":{"perUnit":-1,"startup":0}}]]', '[null]']) {
    await folder.writeText('rates.json', text);
    expect(await readRates(folder, 'a')).toEqual({});
  }
  await keepRates(folder, 'a', rates);
  expect(await readRates(folder, 'a')).toEqual(rates);
});

test('the devices that were used longest ago are forgotten', async () => {
  const folder = newFolder();
  for (let i = 0; i < 30; i++) await keepRates(folder, `device ${i}`, rates);
  expect(await readRates(folder, 'device 29')).toEqual(rates);
  expect(await readRates(folder, 'device 6')).toEqual(rates);
  expect(await readRates(folder, 'device 5')).toEqual({});
});

test('a device has rates of its own for each way to compute on it', () => {
  const adapter = { vendor: 'v', architecture: 'a', device: '', description: '' };
  const nameOf = (software: boolean, kernels?: 'exact' | 'runtime') =>
    deviceOf({ adapter, software }, 2, kernels && { kernels }).name;
  expect(nameOf(false)).toBe(nameOf(false, 'exact'));
  expect(nameOf(true)).toBe(nameOf(true, 'runtime'));
  expect(nameOf(false, 'exact')).not.toBe(nameOf(false, 'runtime'));
  expect(deviceOf(null, 2, { kernels: 'exact' }).name).toBe('wasm 2');
});
