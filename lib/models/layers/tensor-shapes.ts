/** Tensor name → shape. A weight of a linear layer is [out, in]. */
export type TensorShapes = Map<string, readonly number[]>;

/**
 * The shape of a tensor of the architecture.
 *
 * @throws TypeError where it has no tensor of that name
 */
export function shapeOfTensor(shapes: TensorShapes, name: string): readonly number[] {
  const shape = shapes.get(name);
  if (!shape) throw new TypeError(`the architecture has no tensor ${name}`);
  return shape;
}
