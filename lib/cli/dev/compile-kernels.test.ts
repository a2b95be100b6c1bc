import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { compileKernels, kernelsFile } from './compile-kernels';

test('the kernels of the conversion are those of their sources', async () => {
  expect(await readFile(kernelsFile, 'utf8')).toBe(await compileKernels());
});
