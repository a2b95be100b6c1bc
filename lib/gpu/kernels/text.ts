import type { KernelBinding, Storage } from './kernel';

/*
 * Pieces of WGSL that kernels share. Numbers in f16 lie in pairs in `u32` (`pack2x16float`), the element with
 * the even index in the lower half; arithmetic is in f32.
 */

/** 0 … count − 1 */
export const range = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Text for each of so many things, a line or more each. */
export const lines = (count: number, line: (index: number) => string) =>
  range(count).map(line).join('\n');

/** Bytes of a stored element. */
export function storageBytes(storage: Storage): number {
  return storage === 'f32' ? 4 : 2;
}

/** The buffer of a tensor that is read and written four elements at a time. */
export function vectorBinding(
  name: string,
  access: KernelBinding['access'],
  storage: Storage | 'bf16',
): KernelBinding {
  return { name, access, element: storage === 'f32' ? 'vec4<f32>' : 'vec2<u32>' };
}

/** An expression for four consecutive elements as `vec4<f32>`; `index` counts groups of four. */
export function load4(binding: string, storage: Storage | 'bf16', index: string): string {
  return unpacked(`${binding}[${index}]`, storage);
}

/** An expression for four elements, as they are stored, as `vec4<f32>`. */
export function unpacked(words: string, storage: Storage | 'bf16'): string {
  if (storage === 'f32') return words;
  return storage === 'f16' ? `unpackHalf4(${words})` : `unpackUpper4(${words})`;
}

/** A statement that stores a `vec4<f32>`; f16 is clamped to its range, as packing beyond it is undefined. */
export function store4(binding: string, storage: Storage, index: string, value: string): string {
  return storage === 'f32'
    ? `${binding}[${index}] = ${value};`
    : `${binding}[${index}] = packHalf4(${value});`;
}

/** Functions that {@link unpacked} and {@link store4} call. A bf16 is the upper half of an f32. */
export const halfFunctions = `
fn unpackUpper4(words: vec2<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(words.x << 16u, words.x & 0xFFFF0000u, words.y << 16u, words.y & 0xFFFF0000u));
}
fn unpackHalf4(words: vec2<u32>) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
fn packHalf4(value: vec4<f32>) -> vec2<u32> {
  let v = clamp(value, vec4<f32>(-65504.0), vec4<f32>(65504.0));
  return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}
`;
