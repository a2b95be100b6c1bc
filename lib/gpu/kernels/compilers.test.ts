/** @module-tag full */

import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { testPackageFile } from '../../cli/dev/test-packages';
import { compilesMatrices } from '../device';
import type { Kernel } from './kernel';
import { subgroupSizeControl } from './kernel';
import { createDawn } from './testing/dawn';
import { allKernels } from './testing/texts';

const timeout = 600_000;
const kernels = allKernels();

/** Why a text is refused; null where it is not. */
type Compile = (code: string) => Promise<string | null>;

async function refusedBy(compile: Compile, texts: readonly Kernel[]): Promise<string[]> {
  const refused: string[] = [];
  for (const { name, code } of texts) {
    const reason = await compile(code);
    if (reason !== null) refused.push(`${name}: ${reason}`);
  }
  return refused;
}

test("Chromium's compiler takes the text of every kernel", { timeout }, async () => {
  // It has every feature, and needs no driver.
  const gpu = await createDawn(['backend=null', 'enable-dawn-features=allow_unsafe_apis']);
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error('Dawn has no adapter');
  const needed = new Set(kernels.flatMap(({ needs }) => needs));
  const device = await adapter.requestDevice({
    requiredFeatures: [...needed].filter((name): name is GPUFeatureName =>
      adapter.features.has(name),
    ),
  });
  const compile: Compile = async (code) => {
    device.pushErrorScope('validation');
    device.createShaderModule({ code });
    return (await device.popErrorScope())?.message ?? null;
  };
  expect(await compile('fn f() -> f32 { return 1u; }')).not.toBeNull();
  expect(await compilesMatrices(device)).toBe(true);
  expect(await refusedBy(compile, kernels)).toEqual([]);
  device.destroy();
});

test("naga, Firefox's compiler, takes the text of every kernel without matrices or a size of subgroups", {
  timeout,
}, async () => {
  const naga = await loadNaga();
  // Its version of the package is older than the dot products, which later ones have.
  const dot = `fn dot4I8Packed(a: u32, b: u32) -> i32 { return i32(a ^ b); }
fn dot4U8Packed(a: u32, b: u32) -> u32 { return a ^ b; }`;
  const compile: Compile = async (code) => {
    try {
      naga.compileShader(`${code}\n${dot}`, 'spirv');
      return null;
    } catch (error) {
      return String(error);
    }
  };
  // What it takes for a vector of two numbers.
  const cast = `enable f16;
var<workgroup> y: array<vec4<f16>, 1>;
fn f(x: vec2<u32>) { y[0] = bitcast<vec4<f16>>(x); }`;
  expect(await compile(cast)).not.toBeNull();
  const texts = kernels.filter(
    ({ mode, needs }) => mode !== 'matrix' && !needs.includes(subgroupSizeControl),
  );
  expect(texts.some(({ needs }) => needs.includes('shader-f16'))).toBe(true);
  expect(await refusedBy(compile, texts)).toEqual([]);
});

/** naga in WebAssembly: its parser and its types, without its last validation. Its package can be loaded by bundlers only. */
async function loadNaga(): Promise<{ compileShader(code: string, format: string): string }> {
  const folder = await testPackageFile('wgsl-wasm-transpiler-bundler');
  const script = './wgsl_wasm_transpiler_bg.js';
  const bindings = await import(pathToFileURL(path.join(folder, script)).href);
  const bytes = await readFile(path.join(folder, 'wgsl_wasm_transpiler_bg.wasm'));
  const { instance } = await WebAssembly.instantiate(bytes, { [script]: bindings });
  bindings.__wbg_set_wasm(instance.exports);
  (instance.exports.__wbindgen_start as () => void)();
  return bindings;
}
