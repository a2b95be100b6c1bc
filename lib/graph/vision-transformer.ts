import { add, affine, attention, geluErf, layerNorm, linear } from './calls';
import { Graph, type Value } from './graph';
import { memoised } from './memoised';

/*
 * The vision transformer of Dosovitskiy et al. (arXiv:2010.11929, equations 1 to 3), which CLIP's tower is, too
 * (Radford et al., arXiv:2103.00020). Tensors have the names of `visionTensors`. R rows: a class token, and a token
 * for each patch; D channels.
 */

/** Sizes of a vision transformer. */
export interface VisionTransformer {
  /** Side of the square that it sees, and of its patches, in pixels. */
  readonly imageSize: number;
  readonly patchSize: number;
  /** D */
  readonly channels: number;
  readonly layers: number;
  readonly heads: number;
  /** Channels between the two layers of the feed-forward part. */
  readonly hidden: number;
  /** Of the norms. */
  readonly epsilon: number;
  /** Whether the patch embedding has a bias. */
  readonly patchBias: boolean;
  /** Whether there is a norm before the first layer. */
  readonly preNorm: boolean;
}

/** Rows of tokens. */
export const visionRows = ({ imageSize, patchSize }: VisionTransformer) =>
  1 + (imageSize / patchSize) ** 2;

/** Values of a patch: three colours. */
export const patchValues = ({ patchSize }: VisionTransformer) => 3 * patchSize ** 2;

type Tensors = readonly (readonly [name: string, dims: readonly number[]])[];

const norm = (name: string, d: number): Tensors => [
  [`${name}.weight`, [d]],
  [`${name}.bias`, [d]],
];
const affineMap = (name: string, inputs: number, outputs: number): Tensors => [
  [`${name}.weight`, [outputs, inputs]],
  [`${name}.bias`, [outputs]],
];

/** Tensors of a layer. */
export const layerTensors = ({ channels: d, hidden }: VisionTransformer): Tensors => [
  ...norm('norm1', d),
  ...['q', 'k', 'v', 'out'].flatMap((name) => affineMap(name, d, d)),
  ...norm('norm2', d),
  ...affineMap('fc1', d, hidden),
  ...affineMap('fc2', hidden, d),
];

/** Tensors of the embedding; besides them there are `class`, `positions`, and `patch.bias` where it has one. */
export const embeddingTensors = (vit: VisionTransformer): Tensors => [
  ['patch.weight', [vit.channels, patchValues(vit)]],
  ...(vit.preNorm ? norm('pre_norm', vit.channels) : []),
];

/** All tensors up to the last layer, those of layer N as `layers.N.…`. */
export const visionTensors = (vit: VisionTransformer): Tensors => [
  ['class', [vit.channels]],
  ['positions', [visionRows(vit), vit.channels]],
  ...(vit.patchBias ? ([['patch.bias', [vit.channels]]] as const) : []),
  ...embeddingTensors(vit),
  ...Array.from({ length: vit.layers }, (_, layer) =>
    layerTensors(vit).map(([name, dims]) => [`layers.${layer}.${name}`, dims] as const),
  ).flat(),
];

/** A plain linear layer. */
export const plainLinear = (x: Value, name: string, inputs: number, outputs: number, bias = true) =>
  linear(x, { name, inFeatures: inputs, outFeatures: outputs, bits: null, bias, lora: false });

/** A layer norm with the tensors of its name. */
export function visionNorm(x: Value, name: string, vit: VisionTransformer): Value {
  const { graph } = x;
  const [weight, bias] = norm(name, vit.channels).map(([tensor, dims]) =>
    graph.input(tensor, dims),
  );
  if (!weight || !bias) throw new TypeError('a norm has a weight and a bias');
  return affine(layerNorm(x, vit.epsilon), weight, bias);
}

/**
 * `x = [x_class; x_p¹·E; …; x_pᴺ·E] + E_pos`, normed where there is a norm: `patches` [R, 3·p²], zeros for the class
 * token, are added to `table` [R, D], which has class token, positions and the bias of E.
 */
export const visionEmbedding = memoised((vit: VisionTransformer) => {
  const g = new Graph('image-encoder-embedding');
  const table = g.input('table', ['R', vit.channels]);
  const patches = g.input('patches', ['R', patchValues(vit)]);
  // The table is no residual that the product replaces: WebGPU would read and write it in one dispatch.
  const projected = plainLinear(patches, 'patch', patchValues(vit), vit.channels, false);
  const embedded = add(projected, table);
  g.output('x', vit.preNorm ? visionNorm(embedded, 'pre_norm', vit) : embedded); // [R, D]
  return g;
});

/** One layer, on `x` [R, D], which it updates: `x + MSA(LN(x))`, then `x + MLP(LN(x))`. */
export const visionLayer = memoised((vit: VisionTransformer) => {
  const g = new Graph('image-encoder-layer');
  const { channels: d, hidden, heads } = vit;
  const x = g.input('x', ['R', d]);
  const y = visionNorm(x, 'norm1', vit); // [R, D]
  const q = plainLinear(y, 'q', d, d); // [R, D]
  const k = plainLinear(y, 'k', d, d); // [R, D]
  const v = plainLinear(y, 'v', d, d); // [R, D]
  const after = add(x, plainLinear(attention(q, k, v, { heads }), 'out', d, d)); // [R, D]
  const inner = geluErf(plainLinear(visionNorm(after, 'norm2', vit), 'fc1', d, hidden)); // [R, hidden]
  g.update(x, add(after, plainLinear(inner, 'fc2', hidden, d)));
  return g;
});
