/** @module-tag full */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../contract/testing/folder';
import { compileKernels } from './compile-kernels';

const folder = temporaryFolder();

test('compiles when the sources have changed, and says what is wrong with them', async () => {
  const base = folder();
  const source = (text: string) => writeFile(path.join(base, 'assembly/index.ts'), text);
  const run = async () => {
    const text = await readFile(path.join(base, 'kernels-module.js'), 'utf8');
    const bytes = Buffer.from(text.match(/'(.*)'/)?.[1] ?? '', 'base64');
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
    return (exports as { f: (x: number) => number }).f(20);
  };
  await mkdir(path.join(base, 'assembly'));
  await source('export function f(x: i32): i32 { return x + 1; }\n');
  expect(await Promise.all([compileKernels(base), compileKernels(base)])).toContain(true);
  expect(await run()).toBe(21);
  expect(await compileKernels(base)).toBe(false);

  await source('export function f(x: i32): i32 { return y; }\n');
  await expect(compileKernels(base)).rejects.toThrow("Cannot find name 'y'");
  expect(await run()).toBe(21);
  expect((await readdir(base)).sort()).toEqual(['assembly', 'kernels-module.js']);
});
