import { at, safetyThreshold } from '../contract';
import {
  add,
  concat,
  type Graph,
  GraphBuilder,
  gelu,
  gemm,
  layerNormalization,
  multiHeadAttention,
  reshape,
  slice,
  split,
  type Value,
} from '../onnx';
import type { Checkpoint } from '../weights';
import { type Classifier, type RuntimeNetwork, RuntimeRun } from './classifier';
import type { CheckerConfig } from './config';
import { cutSquares, normalise } from './preprocess';
import { type Architecture, loadWeights, patchCount, patchValues, weightShapes } from './weights';

type Float = Value<'float32'>;

/** A vision transformer whose files were read. */
export interface VitNetwork {
  readonly config: CheckerConfig;
  readonly vit: Architecture;
  readonly checkpoint: Pick<Checkpoint, 'read'>;
}

/** A vision transformer as a classifier. */
export function vitClassifier({ config, vit, checkpoint }: VitNetwork): Classifier {
  const { layout, unsafeIndex, preprocessing } = config;
  const network: RuntimeNetwork = {
    graph: (batch, traced) => vitGraph(vit, batch, traced),
    loadWeights: (scope, signal) => loadWeights(scope, layout, vit, checkpoint, signal),
  };
  return {
    threshold: safetyThreshold,
    cut: (image) => cutSquares(image, preprocessing),
    batchSize: 4,
    start: (...run) => RuntimeRun.start(network, ...run),
    input: (bytes) => patchify(normalise(bytes, preprocessing), vit),
    // The softmax over two logits.
    unsafe: (logits) => 1 / (1 + Math.exp(at(logits, 1 - unsafeIndex) - at(logits, unsafeIndex))),
  };
}

/**
 * The vision transformer of Dosovitskiy et al. (arXiv:2010.11929, equations 1 to 4) for B squares, with
 * weights as inputs by timm's names. Its input `pixels` has rows of patches, its result `logits` is [B, 2].
 *
 * @param traced also gives the rows of tokens before the first block and after each one, `hidden_0` …, and
 * the normalised class token `norm_cls`
 */
export function vitGraph(vit: Architecture, batch: number, traced = false): Graph {
  const { channels: d, heads, epsilon } = vit;
  const patches = patchCount(vit);
  const tokens = 1 + patches;
  const g = new GraphBuilder(`safety checker of ${batch}`);
  const weights = new Map(
    [...weightShapes(vit)].map(([name, dims]) => [name, g.input(name, 'float32', dims)] as const),
  );
  const weight = (name: string): Float => {
    const value = weights.get(name);
    if (!value) throw new TypeError(`There is no weight ${name}.`);
    return value;
  };
  const linear = (x: Float, name: string) =>
    gemm(x, weight(`${name}.weight`), weight(`${name}.bias`));
  const norm = (x: Float, name: string) =>
    layerNormalization(x, weight(`${name}.weight`), weight(`${name}.bias`), epsilon);
  const trace = (name: string, x: Float) => {
    if (traced) g.output(name, x);
  };

  // z₀ = [x_class; x_p¹·E; …; x_pᴺ·E] + E_pos
  const pixels = g.input('pixels', 'float32', [batch * patches, patchValues(vit)]);
  const embedded = reshape(linear(pixels, 'patch_embed.proj'), [batch, patches, d]);
  const classToken = concat(new Array<Float>(batch).fill(weight('cls_token')), 0); // [B, 1, D]
  const sequence = concat([classToken, embedded], 1); // [B, T, D]
  let z = reshape(add(sequence, weight('pos_embed')), [batch * tokens, d]);
  trace('hidden_0', z);

  for (let i = 0; i < vit.blocks; i++) {
    const block = `blocks.${i}`;
    // z′ = MSA(LN(z)) + z
    const qkv = linear(norm(z, `${block}.norm1`), `${block}.attn.qkv`); // [B·T, 3D]
    const rows = split(qkv, 1, [d, d, d]).map((part) => reshape(part, [batch, tokens, d]));
    const [q, k, v] = rows as [Float, Float, Float];
    const attended = multiHeadAttention(q, k, v, { heads, scale: 1 / Math.sqrt(d / heads) });
    z = add(linear(reshape(attended, [batch * tokens, d]), `${block}.attn.proj`), z);
    // z = MLP(LN(z′)) + z′
    const wide = gelu(linear(norm(z, `${block}.norm2`), `${block}.mlp.fc1`)); // [B·T, hidden]
    z = add(linear(wide, `${block}.mlp.fc2`), z);
    trace(`hidden_${i + 1}`, z);
  }

  // y = LN(z⁰)
  const first = slice(reshape(z, [batch, tokens, d]), 1, 0, 1); // [B, 1, D]
  const y = norm(reshape(first, [batch, d]), 'norm');
  trace('norm_cls', y);
  g.output('logits', linear(y, 'head')); // [B, 2]
  return g.build();
}

/**
 * Squares as rows of patches: values in the order (channel, row, column), as the weight of a convolution
 * with the stride of its kernel has them.
 *
 * @param pixels [count, 3, size, size]
 * @returns [count · patches, 3 · patch · patch]
 */
export function patchify(
  pixels: Float32Array,
  { imageSize, patchSize }: Pick<Architecture, 'imageSize' | 'patchSize'>,
): Float32Array {
  const perSide = imageSize / patchSize;
  const plane = imageSize * imageSize;
  const rows = new Float32Array(pixels.length);
  let to = 0;
  for (let square = 0; square < pixels.length; square += 3 * plane) {
    for (let patch = 0; patch < perSide * perSide; patch++) {
      const corner =
        Math.floor(patch / perSide) * patchSize * imageSize + (patch % perSide) * patchSize;
      for (let line = 0; line < 3 * patchSize; line++) {
        const channel = Math.floor(line / patchSize);
        const from = square + channel * plane + corner + (line % patchSize) * imageSize;
        rows.set(pixels.subarray(from, from + patchSize), to);
        to += patchSize;
      }
    }
  }
  return rows;
}
