import { KinoraError } from '../../contract';
import type { TensorEntry } from './safetensors';
import { type ByteSource, checkRange, gathered, type WeightFile } from './source';
import type { TensorFile } from './tensor-file';

/** The place of a tensor's bytes. */
export interface TensorLocation {
  readonly file: WeightFile;
  readonly entry: TensorEntry;
}

/** A tensor found in one of a component's files. */
export interface LocatedTensor extends TensorLocation {
  /** Its name in the file, for messages: it may be known by another one here. */
  readonly storedName: string;
  /** The factors of the elements of an fp8 weight: one number, or one for each row. */
  readonly scale?: TensorLocation;
}

/** Tensors by whatever name the holder knows them. */
export type LocatedTensors = ReadonlyMap<string, LocatedTensor>;

/** Names of the scale of `x.weight`, beside it: ComfyUI's older and newer one, and that of blocks. */
const scaleEndings = ['.scale_weight', '.weight_scale', '.weight_scale_inv'] as const;

/** Other quantised forms, by the tensors that only they have. */
const foreignForms: readonly (readonly [RegExp, string])[] = [
  [/\.(qweight|qzeros|wscales)$/, 'as GPTQ, AWQ or SVDQuant do it'],
  [/\.weight\.(absmax|quant_map)$|\.SCB$/, 'by bitsandbytes'],
];

/**
 * All tensors of a component's files, by the files' own names. The scale of an fp8 weight becomes part
 * of the weight and is listed no more.
 *
 * @throws KinoraError `MODEL_FILE_INVALID` when two files have a tensor of the same name, `TENSOR_DTYPE`
 * naming the form of weights that are quantised otherwise
 */
export function locateTensors(files: readonly TensorFile[]): LocatedTensors {
  const located = new Map<string, LocatedTensor>();
  for (const { file, tensors } of files) {
    for (const [name, entry] of tensors) {
      const other = located.get(name);
      if (other) {
        const sentence = `${other.file.name} and ${file.name} both have the tensor ${name}.`;
        throw new KinoraError('MODEL_FILE_INVALID', sentence);
      }
      const form = foreignForms.find(([pattern]) => pattern.test(name));
      if (form) throw foreignForm(file, form[1], name);
      located.set(name, { file, entry, storedName: name });
    }
  }
  for (const [name, scale] of [...located]) {
    const ending = scaleEndings.find((end) => name.endsWith(end));
    if (!ending) continue;
    const weightName = `${name.slice(0, -ending.length)}.weight`;
    const weight = located.get(weightName);
    if (!weight) continue;
    const form = scaledForm(weight.entry, scale.entry);
    if (form) throw foreignForm(scale.file, form, name);
    located.set(weightName, { ...weight, scale: { file: scale.file, entry: scale.entry } });
    located.delete(name);
  }
  return located;
}

/** The form of a weight beside its scale; null for fp8 with one number, or with one for each row. */
function scaledForm(weight: TensorEntry, { dtype, shape }: TensorEntry): string | null {
  const powers = dtype === 'U8' || dtype === 'F8_E8M0';
  if (weight.dtype === 'I8') return 'as int8';
  if (weight.dtype === 'U8') return powers ? 'as MXFP4' : 'as NVFP4';
  if (powers) return 'as MXFP8';
  const [first = 1, ...rest] = shape;
  const ofRows = first === 1 || first === weight.shape[0];
  return ofRows && rest.every((n) => n === 1) ? null : 'in fp8 with a scale for each block';
}

function foreignForm({ name }: WeightFile, form: string, tensor: string): KinoraError {
  return new KinoraError('TENSOR_DTYPE', `${name} is quantised ${form} (${tensor}).`);
}

/** A gap up to this length is read with what lies around it: another request would take longer. */
const mostGap = 2 ** 16;

/** What lies in one file, by its place, in groups that are one read each. */
export function neighbours<T>(
  items: Iterable<T>,
  placeOf: (item: T) => { readonly start: number; readonly end: number },
): { readonly items: T[]; readonly start: number; end: number }[] {
  const groups: { items: T[]; start: number; end: number }[] = [];
  for (const item of [...items].sort((a, b) => placeOf(a).start - placeOf(b).start)) {
    const { start, end } = placeOf(item);
    const group = groups.at(-1);
    if (!group || start - group.end > mostGap) groups.push({ items: [item], start, end });
    else {
      group.items.push(item);
      group.end = Math.max(group.end, end);
    }
  }
  return groups;
}

/**
 * The bytes of a file in which some of its tensors lie, as a file of its own, so that the others are not fetched. No
 * one announces the SHA-256 of these bytes.
 *
 * @returns that file, and the same tensors in it
 */
export function neededPart({ name, identity, ...whole }: ByteSource, tensors: LocatedTensors) {
  let size = 0;
  const ranges = neighbours(tensors, ([, { entry }]) => entry).map((group) => {
    const at = size;
    size += group.end - group.start;
    return { ...group, at };
  });
  async function* stream(from: number, to: number, signal: AbortSignal) {
    checkRange(name, size, from, to);
    for (const { start, end, at } of ranges) {
      const first = start + Math.max(0, from - at);
      const last = Math.min(end, start + to - at);
      if (first < last) yield* whole.stream(first, last, signal);
    }
  }
  const source: ByteSource = {
    name,
    identity,
    sha256: null,
    stream,
    size,
    read: (start, end, signal = new AbortController().signal) =>
      gathered(stream(start, end, signal), end - start),
  };
  const moved = new Map<string, LocatedTensor>();
  for (const { items, start, at } of ranges) {
    for (const [tensor, { entry, ...located }] of items) {
      const place = { start: at + entry.start - start, end: at + entry.end - start };
      moved.set(tensor, { ...located, file: source, entry: { ...entry, ...place } });
    }
  }
  return { source, tensors: moved };
}
