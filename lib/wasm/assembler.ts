/**
 * A small assembler of WebAssembly: functions put the bytes of instructions together, operands first. What an
 * expression needs besides its operands (an offset, lanes, a constant) comes before them.
 */

/** Instructions, as bytes. */
export type Code = readonly number[];

const valueTypes = { i32: 0x7f, f32: 0x7d, v128: 0x7b } as const;
export type ValueType = keyof typeof valueTypes;

/** Instructions without immediates; those above 255 have the prefix of vectors. */
const instructions = {
  'i32.lt_u': [0x49],
  'i32.add': [0x6a],
  'i32.sub': [0x6b],
  'i32.mul': [0x6c],
  'i32.div_u': [0x6e],
  'i32.shl': [0x74],
  'i32.shr_u': [0x76],
  'f32.sqrt': [0x91],
  'f32.add': [0x92],
  'f32.mul': [0x94],
  'f32.div': [0x95],
  'f32.max': [0x97],
  select: [0x1b],
  'f32x4.splat': vector(0x13),
  'i8x16.narrow_i16x8_u': vector(0x66),
  'f32x4.nearest': vector(0x6a),
  'i16x8.narrow_i32x4_s': vector(0x85),
  'i32x4.shl': vector(0xab),
  'i32x4.shr_u': vector(0xad),
  'i32x4.add': vector(0xae),
  'i32x4.mul': vector(0xb5),
  'f32x4.neg': vector(0xe1),
  'f32x4.sqrt': vector(0xe3),
  'f32x4.add': vector(0xe4),
  'f32x4.sub': vector(0xe5),
  'f32x4.mul': vector(0xe6),
  'f32x4.div': vector(0xe7),
  'f32x4.min': vector(0xe8),
  'f32x4.max': vector(0xe9),
  'f32x4.pmin': vector(0xea),
  'f32x4.pmax': vector(0xeb),
  'i32x4.trunc_sat_f32x4_s': vector(0xf8),
  'f32x4.relaxed_madd': vector(0x105),
} as const satisfies Record<string, Code>;

/** Instructions with an address in memory: code, and the power of two of the alignment. */
const accesses = {
  'i32.load': [[0x28], 2],
  'f32.load': [[0x2a], 2],
  'i32.store': [[0x36], 2],
  'v128.load': [vector(0x00), 4],
  'v128.load32_splat': [vector(0x09), 2],
  'v128.store': [vector(0x0b), 4],
  'v128.store16_lane': [vector(0x59), 1],
  'v128.store32_lane': [vector(0x5a), 2],
} as const satisfies Record<string, readonly [Code, number]>;

function vector(number: number): Code {
  return [0xfd, ...unsigned(number)];
}

/** LEB128. */
function unsigned(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(Math.floor(value / 128))];
}

function signed(value: number): number[] {
  return value >= -64 && value < 64 ? [value & 127] : [(value & 127) | 128, ...signed(value >> 7)];
}

/** An instruction without immediates. */
export function op(name: keyof typeof instructions, ...operands: readonly Code[]): Code {
  return [...operands.flat(), ...instructions[name]];
}

/**
 * An instruction that reads or writes memory.
 *
 * @param operands the address, and what is written
 * @param offset bytes behind the address
 * @param lane of the instructions of one lane
 */
export function access(
  name: keyof typeof accesses,
  operands: readonly Code[],
  offset = 0,
  lane?: number,
): Code {
  const [code, align] = accesses[name];
  const lanes = lane === undefined ? [] : [lane];
  return [...operands.flat(), ...code, align, ...unsigned(offset), ...lanes];
}

export function i32(value: number): Code {
  return [0x41, ...signed(value)];
}

export function f32(value: number): Code {
  return [0x43, ...new Uint8Array(Float32Array.of(value).buffer)];
}

/** A lane of four numbers. */
export function extractLane(operand: Code, lane: number): Code {
  return [...operand, ...vector(0x1f), lane];
}

/** A vector of four equal numbers. */
export function splat(type: 'i32' | 'f32', value: number): Code {
  const lanes = (type === 'i32' ? Int32Array : Float32Array).of(value, value, value, value);
  return [...vector(0x0c), ...new Uint8Array(lanes.buffer)];
}

/** Four of the lanes of two vectors: 0 to 3 of the first, 4 to 7 of the second. */
export function shuffle(a: Code, b: Code, lanes: readonly [number, number, number, number]): Code {
  const bytes = lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte));
  return [...a, ...b, ...vector(0x0d), ...bytes];
}

/** Runs its body, and again as long as the condition is not zero. */
export function doWhile(body: readonly Code[], condition: Code): Code {
  return [0x03, 0x40, ...body.flat(), ...condition, 0x0d, 0, 0x0b];
}

/** Runs its body where the condition is not zero. */
export function when(condition: Code, body: readonly Code[]): Code {
  return [...condition, 0x04, 0x40, ...body.flat(), 0x0b];
}

/** Calls a function of the same module, by its place. */
export function call(index: number, ...operands: readonly Code[]): Code {
  return [...operands.flat(), 0x10, ...unsigned(index)];
}

/** A parameter or local variable of a function. */
export class Variable {
  readonly get: Code;

  constructor(
    readonly type: ValueType,
    readonly index: number,
  ) {
    this.get = [0x20, ...unsigned(index)];
  }

  set(value: Code): Code {
    return [...value, 0x21, ...unsigned(this.index)];
  }

  /** Sets it; the value is left as an operand. */
  tee(value: Code): Code {
    return [...value, 0x22, ...unsigned(this.index)];
  }

  /** Adds to an i32. */
  increase(by: number): Code {
    return this.set(op('i32.add', this.get, i32(by)));
  }
}

/** A function without a result. */
export interface FunctionSource {
  readonly name: string;
  readonly parameters: readonly ValueType[];
  readonly body: (
    parameters: readonly Variable[],
    /** Makes a variable, which is zero at first. */
    local: (type: ValueType) => Variable,
  ) => readonly Code[];
}

/** Most pages of a memory that threads share: 4 GiB. */
export const mostPages = 65_536;

/** A module of functions over an imported memory, `memory` of the module `env`, which threads may share. */
export function assemble(
  functions: readonly FunctionSource[],
  isShared = false,
): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters }) => [
    0x60,
    ...list(parameters.map((type) => [valueTypes[type]])),
    0,
  ]);
  const exported = functions.map(({ name }, index) => [...text(name), 0x00, ...unsigned(index)]);
  const bodies = functions.map(({ parameters, body }) => {
    const variables = parameters.map((type, index) => new Variable(type, index));
    const given = [...variables];
    const code = body(given, (type) => {
      const variable = new Variable(type, variables.length);
      variables.push(variable);
      return variable;
    });
    const locals = variables.slice(given.length).map(({ type }) => [1, valueTypes[type]]);
    return sized([...list(locals), ...code.flat(), 0x0b]);
  });
  const limits = isShared ? [0x03, 1, ...unsigned(mostPages)] : [0x00, 1];
  const memory = [...text('env'), ...text('memory'), 0x02, ...limits];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...[1, ...sized(list(types))],
    ...[2, ...sized(list([memory]))],
    ...[3, ...sized(list(functions.map((_, index) => unsigned(index))))],
    ...[7, ...sized(list(exported))],
    ...[10, ...sized(list(bodies))],
  ]);
}

/** The functions of a module over a memory, to be called by their names. */
export function instantiate<Exports>(
  functions: readonly FunctionSource[],
  memory: WebAssembly.Memory,
): Exports {
  const module = new WebAssembly.Module(assemble(functions));
  return new WebAssembly.Instance(module, { env: { memory } }).exports as Exports;
}

function sized(bytes: readonly number[]): number[] {
  return [...unsigned(bytes.length), ...bytes];
}

function list(entries: readonly Code[]): number[] {
  return [...unsigned(entries.length), ...entries.flat()];
}

function text(value: string): number[] {
  return sized([...new TextEncoder().encode(value)]);
}
