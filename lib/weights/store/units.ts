import { KinoraError } from '../../contract';
import type { LocatedTensor } from '../formats/located';
import { rowsOf } from '../formats/rows';
import type { WeightFile } from '../formats/source';
import type { Layout, Place, TensorRecipe } from './layout';

/**
 * Source bytes that are fetched, converted and written together: a slow line loses little of them, and
 * the memory of an installation is a small multiple of it.
 */
export const unitBytes = 2 ** 20;

/** A tensor on its way from a source to its place. */
export interface Conversion {
  readonly place: Place;
  readonly recipe: TensorRecipe;
  readonly located: LocatedTensor;
  /** Rows of one piece; the last piece may have fewer. */
  readonly rowsPerPiece: number;
}

/** Neighbouring rows of a tensor, or the whole of a reordered one. */
export interface Piece {
  /** Index of its {@link Conversion}. */
  readonly tensor: number;
  /** Byte range in the source. */
  readonly start: number;
  readonly end: number;
  readonly firstRow: number;
  readonly rows: number;
}

/** A byte range of a source with all pieces in it. Units follow each other without a gap. */
export interface Unit {
  readonly source: number;
  readonly start: number;
  readonly end: number;
  readonly pieces: readonly Piece[];
}

/** Everything that is to be done, in the order of the files. */
export interface Plan {
  readonly conversions: readonly Conversion[];
  readonly units: readonly Unit[];
}

/**
 * Plans the installation of a component.
 *
 * @param sources its files, in order; their tensors' `file` must be one of them
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE` when the recipe asks for what is not there
 */
export function planUnits(
  layout: Layout,
  sources: readonly WeightFile[],
  tensors: ReadonlyMap<string, LocatedTensor>,
  limit = unitBytes,
): Plan {
  const conversions = layout.places.map(({ recipe, ...place }): Conversion => {
    const located = sourceOf(recipe, tensors);
    const bytes = located.entry.end - located.entry.start;
    const { rows } = rowsOf(recipe.shape);
    const most = Math.max(1, Math.floor((limit * rows) / Math.max(1, bytes)));
    return { place, recipe, located, rowsPerPiece: recipe.reorder ? rows : Math.min(rows, most) };
  });
  const units = sources.flatMap((source, index) => unitsOf(source, index, conversions, limit));
  return { conversions, units };
}

/** @throws KinoraError `TENSOR_MISSING` */
export function locatedTensor(
  source: string,
  tensors: ReadonlyMap<string, LocatedTensor>,
): LocatedTensor {
  const located = tensors.get(source);
  if (located) return located;
  throw new KinoraError('TENSOR_MISSING', `The files lack the tensor ${source}.`);
}

/** The source of a tensor, checked. @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE` */
function sourceOf(
  recipe: TensorRecipe,
  tensors: ReadonlyMap<string, LocatedTensor>,
): LocatedTensor {
  const located = locatedTensor(recipe.source, tensors);
  const { shape } = located.entry;
  if (shape.length !== recipe.shape.length || shape.some((n, i) => n !== recipe.shape[i])) {
    const sentence = `${located.storedName} is [${shape}], but [${recipe.shape}] is needed.`;
    throw new KinoraError('TENSOR_SHAPE', sentence);
  }
  return located;
}

function unitsOf(
  source: WeightFile,
  index: number,
  conversions: readonly Conversion[],
  limit: number,
): Unit[] {
  const pieces = conversions
    .flatMap((conversion, tensor) =>
      conversion.located.file === source ? piecesOf(conversion, tensor) : [],
    )
    .sort((a, b) => a.start - b.start);
  const units: Unit[] = [];
  let start = 0;
  let end = 0;
  let inside: Piece[] = [];
  const close = () => {
    if (end > start) units.push({ source: index, start, end, pieces: inside });
    start = end;
    inside = [];
  };
  /** Goes on to a place in the file, without pieces: headers, gaps, tensors that are not needed. */
  const skipTo = (position: number) => {
    while (position - start > limit) {
      if (end === start) end = start + limit;
      close();
    }
    end = position;
  };
  for (const piece of pieces) {
    skipTo(piece.start);
    if (piece.end - start > limit) close();
    end = piece.end;
    inside.push(piece);
    if (end - start >= limit) close();
  }
  skipTo(source.size);
  close();
  return units;
}

function piecesOf({ located, recipe, rowsPerPiece }: Conversion, tensor: number): Piece[] {
  const { start, end } = located.entry;
  const { rows } = rowsOf(recipe.shape);
  const perRow = (end - start) / rows;
  const pieces: Piece[] = [];
  for (let firstRow = 0; firstRow < rows; firstRow += rowsPerPiece) {
    const count = Math.min(rowsPerPiece, rows - firstRow);
    pieces.push({
      tensor,
      start: start + firstRow * perRow,
      end: start + (firstRow + count) * perRow,
      firstRow,
      rows: count,
    });
  }
  return pieces;
}
