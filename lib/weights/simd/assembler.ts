/**
 * A small assembler for WebAssembly with SIMD: functions over one exported memory, written as nested
 * expressions. Numbers are those of the core specification's binary format (sections 5.2 – 5.5).
 */

/** Instructions in binary form. */
export type Code = readonly number[];

const valueTypes = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;
export type ValueType = keyof typeof valueTypes;

/** A parameter or a local variable of a function. */
export interface Local {
  readonly get: Code;
  set(value: Code): Code;
}

/** A function without result, exported under its name. */
export interface WasmFunction {
  readonly name: string;
  readonly params: readonly ValueType[];
  readonly locals: readonly ValueType[];
  readonly code: Code;
}

/**
 * Defines a function.
 *
 * @param build gets the parameters as locals and a way to declare more; returns the body
 */
export function defineFunction<const Params extends readonly ValueType[]>(
  name: string,
  params: Params,
  build: (
    args: { readonly [Index in keyof Params]: Local },
    declare: (type: ValueType) => Local,
  ) => Code,
): WasmFunction {
  const locals: ValueType[] = [];
  const args = params.map((_, index) => local(index));
  const code = build(args as { [Index in keyof Params]: Local }, (type) =>
    local(params.length + locals.push(type) - 1),
  );
  return { name, params, locals, code };
}

function local(index: number): Local {
  return {
    get: [0x20, ...unsigned(index)],
    set: (value) => [...value, 0x21, ...unsigned(index)],
  };
}

/** The bytes of a module: the functions and `pages` of 64 KiB of memory, exported as `memory`. */
export function assemble(
  functions: readonly WasmFunction[],
  pages: number,
): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ params }) => [0x60, ...vector(params.map(typeByte)), 0]);
  const bodies = functions.map(({ locals, code }) => {
    const body = [...vector(locals.map((type) => [1, ...typeByte(type)])), ...code, 0x0b];
    return [...unsigned(body.length), ...body];
  });
  const exports = functions.map(({ name }, index) => [...text(name), 0, ...unsigned(index)]);
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // "\0asm", version 1
    ...section(1, vector(types)),
    ...section(3, vector(functions.map((_, index) => unsigned(index)))),
    ...section(5, vector([[0, ...unsigned(pages)]])),
    ...section(7, vector([[...text('memory'), 2, 0], ...exports])),
    ...section(10, vector(bodies)),
  ]);
}

function section(id: number, content: Code): Code {
  return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function text(name: string): Code {
  const bytes = [...new TextEncoder().encode(name)];
  return [...unsigned(bytes.length), ...bytes];
}

function typeByte(type: ValueType): Code {
  return [valueTypes[type]];
}

/** LEB128 of a number that is not negative. */
function unsigned(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)];
}

/** LEB128 of a signed 32-bit number. */
function signed(value: number): number[] {
  const low = value & 127;
  const rest = value >> 7;
  const done = (rest === 0 && low < 64) || (rest === -1 && low >= 64);
  return done ? [low] : [low | 128, ...signed(rest)];
}

function littleEndian(view: Float32Array): Code {
  return [...new Uint8Array(view.buffer)];
}

/** An instruction after its operands. */
const plain =
  (opcode: number) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), opcode];

/** A SIMD instruction after its operands, with immediate bytes. */
const simd =
  (opcode: number, ...immediate: readonly number[]) =>
  (...operands: readonly Code[]): Code => [
    ...operands.flat(),
    0xfd,
    ...unsigned(opcode),
    ...immediate,
  ];

/** Alignment is only a hint; 0 promises nothing. */
const memoryArgument = (offset: number): Code => [0, ...unsigned(offset)];

/** Runs the body until the condition, taken after it, is 0. */
export function repeatWhile(condition: Code, body: Code): Code {
  return [0x03, 0x40, ...body, ...condition, 0x0d, 0, 0x0b];
}

/** `condition` ? `yes` : `no`; both are evaluated. */
export function select(yes: Code, no: Code, condition: Code): Code {
  return [...yes, ...no, ...condition, 0x1b];
}

export const i32 = {
  const: (value: number): Code => [0x41, ...signed(value)],
  load16: (address: Code, offset: number): Code => [...address, 0x2f, ...memoryArgument(offset)],
  equal: plain(0x46),
  add: plain(0x6a),
  sub: plain(0x6b),
  and: plain(0x71),
  or: plain(0x72),
  shiftLeft: plain(0x74),
} as const;

export const f32 = {
  const: (value: number): Code => [0x43, ...littleEndian(Float32Array.of(value))],
  store: (address: Code, value: Code): Code => [...address, ...value, 0x38, ...memoryArgument(0)],
  atLeast: plain(0x60),
  abs: plain(0x8b),
  mul: plain(0x94),
  div: plain(0x95),
  fromBits: plain(0xbe),
} as const;

export const v128 = {
  load: (address: Code, offset: number): Code => [
    ...address,
    ...[0xfd, 0],
    ...memoryArgument(offset),
  ],
  store: (address: Code, offset: number, value: Code): Code => [
    ...address,
    ...value,
    ...[0xfd, 0x0b],
    ...memoryArgument(offset),
  ],
  and: simd(0x4e),
  or: simd(0x50),
  xor: simd(0x51),
  /** Bits of the first where the third has ones, else of the second. */
  choose: simd(0x52),
  /** Lanes of 32 bits by index: 0 … 3. */
  shuffle32: (value: Local, ...lanes: readonly number[]): Code =>
    simd(0x0d, ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte)))(
      value.get,
      value.get,
    ),
  /** a0, b0, a1, b1 of lanes of 32 bits. */
  interleave32: simd(0x0d, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23),
} as const;

export const i8x16 = {
  splat: simd(0x0f),
  /** Bytes of two vectors of 16-bit lanes, each lane clamped to 0 … 255. */
  narrow: simd(0x66),
  sub: simd(0x71),
  shiftRight: simd(0x6d),
} as const;

export const i16x8 = {
  splat: simd(0x10),
  /** 16-bit lanes of two vectors of 32-bit lanes. */
  narrow: simd(0x85),
  lowBytes: simd(0x87),
  highBytes: simd(0x88),
  shiftRight: simd(0x8d),
} as const;

export const i32x4 = {
  splat: simd(0x11),
  add: simd(0xae),
  /** Products of 16-bit lanes, neighbours added. */
  dot: simd(0xba),
} as const;

export const f32x4 = {
  splat: simd(0x13),
  first: simd(0x1f, 0),
  greater: simd(0x44),
  abs: simd(0xe0),
  add: simd(0xe4),
  sub: simd(0xe5),
  mul: simd(0xe6),
  div: simd(0xe7),
  /** b < a ? b : a; one instruction on every processor, unlike `min`. */
  pmin: simd(0xea),
  /** a < b ? b : a. */
  pmax: simd(0xeb),
} as const;

export const f64x2 = {
  add: simd(0xf0),
  mul: simd(0xf2),
  /** Of the first two lanes. */
  fromF32: simd(0x5f),
  /** Of the first two lanes. */
  fromI32: simd(0xfe),
} as const;
