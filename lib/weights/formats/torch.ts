import { KinoraError } from '../../contract';
import type { TensorEntry } from './safetensors';
import { damaged, truncated, type WeightFile } from './source';

/** Element type and bytes of the storages that a pickle may name. */
const storageTypes: Readonly<Record<string, readonly [dtype: string, bytes: number]>> = {
  'torch FloatStorage': ['F32', 4],
  'torch HalfStorage': ['F16', 2],
  'torch BFloat16Storage': ['BF16', 2],
  'torch DoubleStorage': ['F64', 8],
  'torch LongStorage': ['I64', 8],
};
const orderedDict = 'collections OrderedDict';
const rebuildTensor = 'torch._utils _rebuild_tensor_v2';

/** Largest size of the archive's directory and of its pickle: far beyond those of any known model. */
const maxTableBytes = 2 ** 25;

class Global {
  constructor(readonly name: string) {}
}

/** Elements of one type: a record of the archive. */
class Storage {
  constructor(
    readonly type: readonly [dtype: string, bytes: number],
    readonly record: string,
    readonly count: number,
  ) {}
}

/** Elements of a storage from `offset` on, row-major. */
class Tensor {
  constructor(
    readonly storage: Storage,
    readonly offset: number,
    readonly shape: readonly number[],
  ) {}
}

/** Keys under which training tools keep a state dict, from the outermost on. Entries beside it are not read. */
const wrappers = ['state_dict', 'gen_model', 'generator'] as const;

/** What a pickle may be made of here. A tuple is an array. */
type Value = null | boolean | number | string | Global | Storage | Tensor | Value[] | Table;
type Table = Map<string, Value>;

/**
 * Finds the tensors of a PyTorch checkpoint (`torch.save` since 1.6): an archive without compression, with a pickle of
 * the table and a record for each storage. The pickle may only build what a state dict is made of, and nothing in it is
 * run: other instructions and classes are refused. Tensors of a table in the table, as in `{params: {…}}`, have its key
 * before their names, but for the {@link wrappers}.
 *
 * @returns the tensors, and where the first of them begins
 * @throws KinoraError `MODEL_FILE_INVALID`, `MODEL_FILE_TRUNCATED`
 */
export async function readTorchHeader(
  file: WeightFile,
): Promise<{ readonly tensors: ReadonlyMap<string, TensorEntry>; readonly headerBytes: number }> {
  const records = await readDirectory(file);
  const name = [...records.keys()].find((record) => /^[^/]+\/data\.pkl$/.test(record)) ?? '';
  const pickle = await placeOf(file, records.get(name));
  if (!pickle || pickle.end - pickle.start > maxTableBytes)
    throw damaged(file, 'data.pkl is missing');
  const folder = name.slice(0, -'data.pkl'.length);
  const table = unpickle(file, await file.read(pickle.start, pickle.end));
  const tensors = new Map<string, TensorEntry>();
  for (const [key, { storage, offset, shape }] of tensorsOf(file, table)) {
    const [dtype, bytes] = storage.type;
    const place = await placeOf(file, records.get(`${folder}data/${storage.record}`));
    if (place?.end !== (place?.start ?? 0) + storage.count * bytes) {
      throw damaged(file, `${key} has no storage of ${storage.count} elements`);
    }
    const start = place.start + offset * bytes;
    tensors.set(key, { dtype, shape, start, end: start + product(shape) * bytes });
  }
  const inOrder = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  const headerBytes = inOrder[0]?.[1].start ?? pickle.end;
  let position = headerBytes;
  for (const [key, { start, end }] of inOrder) {
    if (start < position) throw damaged(file, `${key} overlaps another tensor`);
    position = end;
  }
  return { tensors, headerBytes };
}

/** A file of the archive; `offset` is that of its local header. */
interface ZipRecord {
  readonly offset: number;
  readonly size: number;
}

/** The directory of an archive that ends without a comment (PKWARE APPNOTE.TXT, 4.3.12 and 4.3.16). */
async function readDirectory(file: WeightFile): Promise<Map<string, ZipRecord>> {
  const ending = Math.max(0, file.size - 22);
  const end = viewOf(await file.read(ending, file.size));
  if (end.byteLength < 22 || end.getUint32(0, true) !== 0x06054b50) {
    throw new KinoraError('MODEL_FILE_TRUNCATED', `${file.name} ends before its directory.`);
  }
  const [size, offset] = [end.getUint32(12, true), end.getUint32(16, true)];
  if (offset + size > ending || size > maxTableBytes) throw damaged(file, 'it has no directory');
  const bytes = await file.read(offset, offset + size);
  const view = viewOf(bytes);
  const records = new Map<string, ZipRecord>();
  for (let at = 0; at < size; ) {
    if (at + 46 > size || view.getUint32(at, true) !== 0x02014b50) {
      throw damaged(file, 'its directory is broken');
    }
    const u16 = (field: number) => view.getUint16(at + field, true);
    const u32 = (field: number) => view.getUint32(at + field, true);
    const record = { offset: u32(42), size: u32(24) };
    // 2³² − 1 says that the number stands elsewhere: zip64.
    if (u16(10) !== 0 || u32(20) !== record.size || Math.max(u32(42), u32(24)) === 2 ** 32 - 1) {
      throw damaged(file, 'its records are compressed, or beyond 4 GiB');
    }
    records.set(textOf(bytes.subarray(at + 46, at + 46 + u16(28))), record);
    at += 46 + u16(28) + u16(30) + u16(32);
  }
  return records;
}

/** The content of a record: behind its local header, which has a length of its own. */
async function placeOf(file: WeightFile, record: ZipRecord | undefined) {
  if (!record) return undefined;
  const { offset, size } = record;
  if (offset + 30 > file.size) throw truncated(file.name, offset + 30, file.size);
  const header = viewOf(await file.read(offset, offset + 30));
  const start = offset + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  if (start + size > file.size) throw truncated(file.name, start + size, file.size);
  return { start, end: start + size };
}

/** The tensors of a table and of the tables in it. */
function tensorsOf(file: WeightFile, whole: Value): Map<string, Tensor> {
  const inside = (table: Value, key: string) => {
    const inner = table instanceof Map ? table.get(key) : undefined;
    return inner instanceof Map ? inner : table;
  };
  const table = wrappers.reduce(inside, whole);
  const tensors = new Map<string, Tensor>();
  const seen = new Set<Value>();
  const take = (name: string, value: Value) => {
    if (!(value instanceof Tensor)) return;
    if (seen.has(value)) throw damaged(file, `${name} is another tensor again`);
    seen.add(value);
    tensors.set(name, value);
  };
  for (const [name, value] of table instanceof Map ? table : []) {
    take(name, value);
    if (value instanceof Map) for (const [inner, one] of value) take(`${name}.${inner}`, one);
  }
  if (tensors.size === 0) throw damaged(file, 'it has no tensors');
  return tensors;
}

/**
 * Reads the part of pickle (CPython, `Lib/pickletools.py`) that state dicts are written in. Attributes of an object
 * (BUILD) are left out: there a state dict has the versions of its modules.
 */
function unpickle(file: WeightFile, bytes: Uint8Array): Value {
  const view = viewOf(bytes);
  const [stack, marks, memo] = [[] as Value[], [] as number[], new Map<number, Value>()];
  let at = 0;
  const after = (length: number) => {
    at += length;
    if (at > bytes.length) throw new RangeError('the pickle ends');
    return at - length;
  };
  const u8 = () => view.getUint8(after(1));
  const u32 = () => view.getUint32(after(4), true);
  const text = (length: number) => textOf(bytes.subarray(after(length), at));
  const line = () => {
    const end = bytes.indexOf(0x0a, at);
    if (end < 0) throw new RangeError('the pickle ends');
    const read = text(end - at);
    after(1);
    return read;
  };
  const known = (value: Value | undefined): Value => {
    if (value === undefined) throw new RangeError('nothing is there');
    return value;
  };
  const pop = () => known(stack.pop());
  const top = () => known(stack.at(-1));
  const many = (count: number) => stack.splice(-count, count);
  const sinceMark = () => stack.splice(marks.pop() ?? 0);
  const setItems = (items: readonly Value[]) => {
    const table = top();
    for (let i = 0; i < items.length; i += 2) {
      const [key, value] = [items[i], known(items[i + 1])];
      const isName = typeof key === 'number' || (typeof key === 'string' && key.length <= 1024);
      if (!(table instanceof Map) || !isName) throw new RangeError('no table');
      table.set(String(key), value);
    }
  };
  const push = (value: Value) => void stack.push(value);
  const addItems = (items: readonly Value[]) => {
    const list = top();
    if (!Array.isArray(list)) throw new RangeError('no list');
    list.push(...items);
  };
  const steps: Readonly<Record<string, () => void>> = {
    '\x80': () => void u8(), // PROTO
    '}': () => push(new Map()),
    ')': () => push([]),
    ']': () => push([]),
    a: () => addItems(many(1)),
    e: () => addItems(sinceMark()),
    G: () => push(view.getFloat64(after(8))),
    N: () => push(null),
    '\x88': () => push(true),
    '\x89': () => push(false),
    K: () => push(u8()),
    M: () => push(view.getUint16(after(2), true)),
    J: () => push(view.getInt32(after(4), true)),
    X: () => push(text(u32())),
    '(': () => void marks.push(stack.length),
    t: () => push(sinceMark()),
    '\x85': () => push(many(1)), // TUPLE1
    '\x86': () => push(many(2)),
    '\x87': () => push(many(3)),
    q: () => void memo.set(u8(), top()),
    r: () => void memo.set(u32(), top()),
    h: () => push(known(memo.get(u8()))),
    j: () => push(known(memo.get(u32()))),
    c: () => push(new Global(`${line()} ${line()}`)),
    Q: () => push(storageOf(pop())),
    R: () => push(reduce(pop(), pop())),
    s: () => setItems(many(2)),
    u: () => setItems(sinceMark()),
    b: () => void pop(), // BUILD
  };
  try {
    for (;;) {
      const code = String.fromCharCode(u8());
      if (code === '.') return pop();
      const step = Object.hasOwn(steps, code) ? steps[code] : undefined;
      if (!step) throw new RangeError(`the instruction ${JSON.stringify(code)}`);
      step();
    }
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    const sentence = `${file.name} is more than a table of tensors, or damaged: ${cause.message}.`;
    throw new KinoraError('MODEL_FILE_INVALID', sentence, { cause });
  }
}

/** `('storage', torch.FloatStorage, '0', 'cpu', 27)`: record and number of elements. */
function storageOf(id: Value): Storage {
  const [kind, type, record, , count] = Array.isArray(id) ? id : [];
  const name = type instanceof Global ? type.name : '';
  const known = Object.hasOwn(storageTypes, name) ? storageTypes[name] : undefined;
  if (kind === 'storage' && known && typeof record === 'string' && isSize(count)) {
    return new Storage(known, record, count);
  }
  throw new RangeError(`a storage ${name.slice(0, 100)}`);
}

/** Makes the value of a class of its arguments: an empty table, or a tensor. */
function reduce(args: Value, type: Value): Value {
  const name = type instanceof Global ? type.name : '';
  if (!Array.isArray(args)) throw new RangeError('no arguments');
  if (name === orderedDict && args.length === 0) return new Map();
  const [storage, offset, shape, strides] = args;
  if (name !== rebuildTensor) throw new RangeError(`a ${name.slice(0, 100)}`);
  const isTensor = storage instanceof Storage && isSize(offset);
  if (!isTensor || !isSizes(shape) || !isSizes(strides) || shape.length !== strides.length) {
    throw new RangeError('a tensor without sizes');
  }
  const isRowMajor = shape.every((n, i) => n === 1 || strides[i] === product(shape.slice(i + 1)));
  if (!isRowMajor) throw new RangeError('a transposed tensor');
  if (offset + product(shape) > storage.count) throw new RangeError('a tensor beyond its storage');
  return new Tensor(storage, offset, shape);
}

function isSize(value: Value | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isSizes(value: Value | undefined): value is number[] {
  return Array.isArray(value) && value.length <= 16 && value.every(isSize);
}

function product(shape: readonly number[]): number {
  return shape.reduce((size, n) => size * n, 1);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
