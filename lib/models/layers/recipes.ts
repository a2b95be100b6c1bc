import type { Precision } from '../../contract';
import { elementCount } from '../../gpu';
import type { ComponentRecipe, StoredForm, TensorRecipe } from '../../weights/store/layout';
import { precisionFor } from './layer-data';
import { shapeOfTensor, type TensorShapes } from './tensor-shapes';

/** Gives the recipe of a tensor by its name, and knows its shape. */
export function tensorRecipes(shapes: TensorShapes) {
  return (name: string, form: StoredForm, pack: string): TensorRecipe => {
    return { name, source: name, shape: shapeOfTensor(shapes, name), form, pack };
  };
}

/** The file of one of many layers, such as `block-07.bin`. */
export function packOf(kind: string, index: number): string {
  return `${kind}-${String(index).padStart(2, '0')}.bin`;
}

/**
 * All tensors under a prefix in one pack, so that a layer is one contiguous read.
 *
 * @param isLinear whether a tensor is the weight of a linear layer; the others are stored as f32
 * @param precision of the linear layers, where their rows are whole blocks
 */
export function layerRecipe(
  shapes: TensorShapes,
  prefix: string,
  isLinear: (name: string, shape: readonly number[]) => boolean,
  precision: Precision,
  pack: string,
): TensorRecipe[] {
  const recipe = tensorRecipes(shapes);
  return [...shapes]
    .filter(([name]) => name.startsWith(`${prefix}.`))
    .map(([name, shape]) => {
      const columns = elementCount(shape.slice(1));
      const form = isLinear(name, shape) ? precisionFor(precision, columns) : 'f32';
      return recipe(name, form, pack);
    });
}

/**
 * Every tensor as it comes, in one pack: for small components that are read whole.
 *
 * @param tensors name → what has its shape
 */
export function plainRecipe(
  component: string,
  tensors: ReadonlyMap<string, { readonly shape: readonly number[] }>,
): ComponentRecipe {
  return {
    component,
    tensors: [...tensors].map(([name, { shape }]) => ({
      name,
      source: name,
      shape,
      form: 'compact',
      pack: 'tensors.bin',
    })),
  };
}
