/** The WGSL language feature of integer dot products. */
export const integerDots = 'packed_4x8_integer_dot_product';

/** The feature with which a kernel says how many invocations its subgroups have. */
export const subgroupSizeControl = 'subgroup-size-control';

/**
 * How exactly a kernel computes. `exact`: f32 products and sums, operands stored in f16 or f32. `fast`: products of
 * 8-bit integers. `matrix`: the GPU's matrix units, f16 products and f32 sums. The tuner compares a kernel with others
 * of its mode only.
 */
export type KernelMode = 'exact' | 'fast' | 'matrix';

/** How a buffer holds numbers; arithmetic is in f32. Two f16 are packed into a `u32`, so no GPU feature is needed. */
export type Storage = 'f32' | 'f16';

/** A storage buffer of a kernel. */
export interface KernelBinding {
  readonly name: string;
  /** `write` also allows reading: a kernel may update in place. */
  readonly access: 'read' | 'write';
  /** Element of the runtime-sized array in WGSL. */
  readonly element:
    | 'f32'
    | 'f16'
    | 'u32'
    | 'i32'
    | 'vec2<u32>'
    | 'vec4<u32>'
    | 'vec4<f32>'
    | 'atomic<u32>';
}

/** What a kernel is made from; {@link defineKernel} writes the rest of the text. */
export interface KernelSource {
  /** Mode unless it is `exact`, family as one word, and variant, for people: `fast linear q8 →f16 128×64`. */
  readonly name: string;
  readonly mode: KernelMode;
  readonly bindings: readonly KernelBinding[];
  /** Names of the uniforms, `u32` unless they end in `: f32`. */
  readonly uniforms: readonly string[];
  /** Invocations of a workgroup, one-dimensional. */
  readonly threads: number;
  /** Bytes of workgroup memory that `declarations` asks for. */
  readonly workgroupBytes: number;
  /** Invocations of a subgroup; the device chooses when absent. Needs {@link subgroupSizeControl}. */
  readonly subgroup?: number | undefined;
  /** GPU features, and WGSL language features, that the text uses. */
  readonly needs?: readonly string[];
  /** WGSL directives such as `enable f16;`. */
  readonly directives?: string;
  /** Parameters of `main` besides those that make `thread` and `group`. */
  readonly builtins?: string;
  /** Module scope: workgroup variables, constants, functions. */
  readonly declarations?: string;
  /** Body of `main`. It has `thread` (u32, in the workgroup) and `group` (u32, of the whole grid). */
  readonly body: string;
}

/** A compute shader as data. */
export interface Kernel
  extends Pick<
    KernelSource,
    'name' | 'mode' | 'bindings' | 'uniforms' | 'threads' | 'workgroupBytes'
  > {
  /** Equal keys have equal texts. */
  readonly key: string;
  readonly code: string;
  readonly needs: readonly string[];
}

const sizeDirectives = '\nenable subgroups;\nenable subgroup_size_control;';

/** Most uniforms of a kernel: a slot of the uniform buffer has 256 bytes, one of them for `firstGroup`. */
export const maxUniforms = 63;

/**
 * Writes a kernel's text: the bindings in order, the uniforms behind them, and `main`. The grid is
 * one-dimensional, so that any dispatch can be split: `group` counts on over the parts.
 *
 * @throws RangeError for more than {@link maxUniforms} uniforms
 */
export function defineKernel(source: KernelSource): Kernel {
  const { mode, bindings, uniforms, threads, workgroupBytes, subgroup } = source;
  const name = subgroup ? `${source.name} in subgroups of ${subgroup}` : source.name;
  const needs = [...(source.needs ?? []), ...(subgroup ? [subgroupSizeControl] : [])];
  const directives = `${source.directives ?? ''}${subgroup ? sizeDirectives : ''}`;
  if (uniforms.length > maxUniforms) throw new RangeError(`${name} has too many uniforms`);
  const buffers = bindings.map(
    ({ name: binding, access, element }, index) =>
      `@group(0) @binding(${index}) var<storage, ${access === 'read' ? 'read' : 'read_write'}> ${binding}: array<${element}>;`,
  );
  const fields = ['firstGroup', ...uniforms].map((uniform) => `  ${withType(uniform)},`);
  const code = `${directives}
struct Uniforms {
${fields.join('\n')}
}
${buffers.join('\n')}
@group(0) @binding(${bindings.length}) var<uniform> uniforms: Uniforms;
${source.declarations ?? ''}
@compute ${subgroup ? `@subgroup_size(${subgroup}) ` : ''}@workgroup_size(${threads})
fn main(${source.builtins ? `${source.builtins}, ` : ''}@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) workgroup: vec3<u32>) {
  let group = uniforms.firstGroup + workgroup.x;
${source.body}
}
`.trimStart();
  const key = `${name} #${hash(code)}`;
  return { name, key, code, mode, bindings, uniforms, threads, workgroupBytes, needs };
}

/**
 * The family of a kernel: the first word of its name. That of `fast linear …` is `fastLinear`, a family of its own, as
 * are those of matrices, except that `matrix linear …` is a variant of `linear`.
 */
export function familyOf({ name }: Pick<Kernel, 'name'>): string {
  const [first = '', second = ''] = name.split(' ');
  if (first !== 'fast' && first !== 'matrix') return first;
  if (first === 'matrix' && second === 'linear') return second;
  return `${first}${second.charAt(0).toUpperCase()}${second.slice(1)}`;
}

/** Whether a uniform is a float; its bits are then passed as they are. */
export function isFloatUniform(uniform: string): boolean {
  return uniform.endsWith(': f32');
}

/** The name of a uniform without its type. */
export function uniformName(uniform: string): string {
  return uniform.split(':')[0] ?? uniform;
}

function withType(uniform: string): string {
  return uniform.includes(':') ? uniform : `${uniform}: u32`;
}

/** FNV-1a, 32 bits, as eight hexadecimal digits. */
export function hash(text: string): string {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  }
  return (state >>> 0).toString(16).padStart(8, '0');
}
