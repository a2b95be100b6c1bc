import type { TensorShapes } from '../layers/tensor-shapes';

/** Gives the shape of a tensor by the model's own name; undefined for one that is not there. */
export type ShapeOf = (name: string) => readonly number[] | undefined;

/** A way to name the tensors of a component. */
export interface Naming {
  readonly name: string;
  /** From the model's own name, which is that of diffusers, to this one. */
  readonly rename: (name: string) => string;
}

/** The names that models use themselves. */
export const diffusersNaming: Naming = { name: 'diffusers', rename: (name) => name };

/** A component of a model, as weight files may have it. */
export interface ComponentArchitecture {
  /** In messages, such as "text encoder". */
  readonly name: string;
  /** Every tensor that it has by its configuration. @param shapeOf tells what only the file knows */
  readonly tensors: (shapeOf: ShapeOf) => TensorShapes;
  readonly namings: readonly Naming[];
  /** What tools put before the names when they save it as a part of something. */
  readonly prefixes: readonly string[];
  /** Names under which a tensor may be stored instead. */
  readonly aliases?: ReadonlyMap<string, string>;
  /** Tensors without a meaning for the result, besides those of any file. */
  readonly harmless?: readonly RegExp[];
}

/** Parts of a name and what replaces them, in order. */
export type Renames = readonly (readonly [
  from: string | RegExp,
  to: string | ((match: string, ...groups: string[]) => string),
])[];

/** A name after some replacements, each of the first occurrence. */
export function renamed(name: string, renames: Renames): string {
  return renames.reduce(
    (result, [from, to]) =>
      typeof to === 'string' ? result.replace(from, to) : result.replace(from, to),
    name,
  );
}
