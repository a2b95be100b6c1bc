import { KinoraError, type Precision } from '../../contract';
import { blockSize } from '../convert/blocks';
import { rowsOf } from '../formats/rows';

/** How a tensor lies in the store. */
export type StoredForm =
  /** Linear weight in blocks of 32 with f32 scales; `f32` where its rows are no multiple of 32. */
  | Exclude<Precision, 'f32'>
  | 'f32'
  /** F32, F16 and BF16 as they come; quantised types as 8-bit blocks: tables and kernels. */
  | 'compact';

/** How one tensor is stored. */
export interface TensorRecipe {
  /** Its name in the store, usually the tensor's own. */
  readonly name: string;
  /** Name in the checkpoint, by diffusers. */
  readonly source: string;
  /** Shape of the source, as the architecture wants it. */
  readonly shape: readonly number[];
  readonly form: StoredForm;
  /** File of the component that it is kept in: one per layer, so that a layer is one read. */
  readonly pack: string;
  /**
   * A new order of the elements, for kernels that the engine wants otherwise than the file has them.
   * The tensor is then converted whole; without it, row by row.
   */
  readonly reorder?: {
    readonly shape: readonly number[];
    readonly apply: (data: Float32Array) => Float32Array;
  };
}

/** How a component is kept: every tensor it needs, in the order of the packs. Others are left out. */
export interface ComponentRecipe {
  readonly component: string;
  readonly tensors: readonly TensorRecipe[];
}

/** How the elements of a tensor lie in its pack. */
export const encodings = ['int8', 'int4', 'F32', 'F16', 'BF16'] as const;
export type Encoding = (typeof encodings)[number];

/** A tensor's place in the store. */
export interface Place {
  readonly name: string;
  readonly encoding: Encoding;
  readonly shape: readonly number[];
  readonly pack: string;
  /** Byte range in the pack: elements, or the values of all blocks and after them their scales. */
  readonly offset: number;
  readonly bytes: number;
}

/** Places of the tensors of a component in its packs. */
export interface Layout {
  /** In the recipe's order. */
  readonly places: readonly (Place & { readonly recipe: TensorRecipe })[];
  /** Pack → its size in bytes. */
  readonly packs: ReadonlyMap<string, number>;
}

/** Tensors start at multiples of this, so that every view of a pack is aligned. */
const alignment = 64;

/**
 * Lays a component out: every tensor after the one before it in its pack.
 *
 * @param typeOf element type of a source tensor
 */
export function layoutOf(recipe: ComponentRecipe, typeOf: (source: string) => string): Layout {
  const packs = new Map<string, number>();
  const places = recipe.tensors.map((tensor) => {
    const { name, pack } = tensor;
    const shape = tensor.reorder?.shape ?? tensor.shape;
    const encoding = encodingOf(tensor, typeOf(tensor.source));
    const offset = Math.ceil((packs.get(pack) ?? 0) / alignment) * alignment;
    const bytes = encodedBytes(encoding, shape);
    packs.set(pack, offset + bytes);
    return { name, encoding, shape, pack, offset, bytes, recipe: tensor };
  });
  return { places, packs };
}

/**
 * Bytes that a component takes in the store, for a download plan.
 *
 * @param typeOf element types where they are known already; `compact` tensors count as F16 else
 */
export function storedBytes(
  recipe: ComponentRecipe,
  typeOf: (source: string) => string | undefined = () => undefined,
): number {
  const { packs } = layoutOf(recipe, (source) => typeOf(source) ?? 'F16');
  return [...packs.values()].reduce((sum, bytes) => sum + bytes, 0);
}

function encodingOf({ form, shape, reorder }: TensorRecipe, type: string): Encoding {
  const fits = !reorder && rowsOf(shape).width % blockSize === 0 && shape.length > 1;
  if (form === 'int8' || form === 'int4') return fits ? form : 'F32';
  if (form === 'f32') return 'F32';
  if (type === 'F32' || type === 'F16' || type === 'BF16') return type;
  return fits ? 'int8' : 'F32';
}

/** Bytes of a whole tensor. */
function encodedBytes(encoding: Encoding, shape: readonly number[]): number {
  const { rows, width } = rowsOf(shape);
  const { element, scale } = rowBytes(encoding, width);
  return rows * (element + scale);
}

/** Bytes of the elements of one row, and of its scales where it is in blocks. */
export function rowBytes(encoding: Encoding, width: number): { element: number; scale: number } {
  switch (encoding) {
    case 'F32':
      return { element: width * 4, scale: 0 };
    case 'F16':
    case 'BF16':
      return { element: width * 2, scale: 0 };
    case 'int8':
      return { element: width, scale: (width / blockSize) * 4 };
    case 'int4':
      return { element: width / 2, scale: (width / blockSize) * 4 };
  }
}

/** Byte ranges in the pack, `[start, end)`, of some neighbouring rows: elements, and scales if any. */
export function rowRanges(
  { encoding, shape, offset }: Place,
  firstRow: number,
  count: number,
): { elements: readonly [number, number]; scales: readonly [number, number] | null } {
  const { rows, width } = rowsOf(shape);
  const { element, scale } = rowBytes(encoding, width);
  const start = offset + firstRow * element;
  const scaleStart = offset + rows * element + firstRow * scale;
  return {
    elements: [start, start + count * element],
    scales: scale === 0 ? null : [scaleStart, scaleStart + count * scale],
  };
}

/** Checks that a recipe names each tensor and each source once. @throws KinoraError `INTERNAL` */
export function checkRecipe(recipe: ComponentRecipe): void {
  for (const key of ['name', 'source'] as const) {
    const seen = new Set<string>();
    for (const tensor of recipe.tensors) {
      if (seen.has(tensor[key])) {
        throw new KinoraError('INTERNAL', `The recipe has the ${key} ${tensor[key]} twice.`);
      }
      seen.add(tensor[key]);
    }
  }
}
