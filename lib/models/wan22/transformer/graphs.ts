import {
  type AttentionInputs,
  add,
  attention,
  GraphBuilder,
  layerNormalization,
  reshape,
  rmsNormalization,
  rotaryEmbedding,
  silu,
  split,
  sub,
  type Value,
} from '../../../onnx';
import { type TransformerConfig, transformerDim } from '../config';
import { type LinearSpec, linear } from '../layers';
import { memoised } from '../memoised';

/*
 * The Wan transformer as a few small graphs, in the forward order of the README. Weights are inputs, so that
 * one compiled graph serves all blocks. L is the number of tokens of a chunk, S of the clip, T of the text;
 * D = heads·headDim.
 */

type Tensor = Value<'float32'>;

/** The linear layers of one block, by their diffusers names. */
export const blockLinears = [
  'attn1.to_q',
  'attn1.to_k',
  'attn1.to_v',
  'attn1.to_out.0',
  'attn2.to_q',
  'attn2.to_k',
  'attn2.to_v',
  'attn2.to_out.0',
  'ffn.net.0.proj',
  'ffn.net.2',
] as const;
export type BlockLinear = (typeof blockLinears)[number];
export type BlockSpecs = Readonly<Record<BlockLinear, LinearSpec>>;

/** Patch embedding: `tokens` [L, C·ph·pw] → `hidden` [L, D]. */
export const patchEmbeddingGraph = memoised((spec: LinearSpec) => {
  const g = new GraphBuilder('patch-embedding');
  const tokens = g.input('tokens', 'float32', ['L', spec.inFeatures]);
  g.output('hidden', linear(g, 'patch_embedding', spec, tokens));
  return g.build();
});

/**
 * Time: `sinusoid` [1, freq] → `temb` [1, D] for the head and `modulation` [6, D] for the blocks.
 * One row: a clip has only the timesteps 0 and t, and each chunk has one of them.
 */
export const timeEmbeddingGraph = memoised(
  (
    config: TransformerConfig,
    specs: { linear1: LinearSpec; linear2: LinearSpec; projection: LinearSpec },
  ) => {
    const g = new GraphBuilder('time-embedding');
    const sinusoid = g.input('sinusoid', 'float32', [1, config.freq_dim]);
    const inner = silu(linear(g, 'linear_1', specs.linear1, sinusoid)); // [1, D]
    const temb = linear(g, 'linear_2', specs.linear2, inner); // [1, D]
    const projected = linear(g, 'time_proj', specs.projection, silu(temb)); // [1, 6·D]
    g.output('temb', temb);
    g.output('modulation', reshape(projected, [6, transformerDim(config)]));
    return g.build();
  },
);

/** Text: `embeds` [T, textDim] → `context` [T, D]. */
export const textEmbeddingGraph = memoised(
  (specs: { linear1: LinearSpec; linear2: LinearSpec }) => {
    const g = new GraphBuilder('text-embedding');
    const embeds = g.input('embeds', 'float32', ['T', specs.linear1.inFeatures]);
    const inner = linear(g, 'linear_1', specs.linear1, embeds, { activation: 'gelu' }); // [T, D]
    g.output('context', linear(g, 'linear_2', specs.linear2, inner)); // [T, D]
    return g.build();
  },
);

/** Step 3, the text's side: `context` [T, D] → `keys`, `values` [1, T, D]. */
export const textKeysValuesGraph = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new GraphBuilder('text-keys-values');
  const d = transformerDim(config);
  const context = g.input('context', 'float32', ['T', d]);
  const keyNorm = g.input('norm_k', 'float32', [d]);
  const keys = linear(g, 'to_k', specs['attn2.to_k'], context); // [T, D]
  const values = linear(g, 'to_v', specs['attn2.to_v'], context); // [T, D]
  g.output('keys', reshape(rmsNormalization(keys, keyNorm, config.eps), [1, 'T', d]));
  g.output('values', reshape(values, [1, 'T', d]));
  return g.build();
});

/** The six rows of `scale_shift_table + modulation`, each [D], in the checkpoint's order. */
function modulationRows(g: GraphBuilder, config: TransformerConfig): Tensor[] {
  const d = transformerDim(config);
  const table = g.input('scale_shift_table', 'float32', [6, d]);
  const modulation = g.input('modulation', 'float32', [6, d]);
  const rows = split(add(table, modulation), 0, [1, 1, 1, 1, 1, 1]);
  return rows.map((row) => reshape(row, [d]));
}

/**
 * `LN(x)·(1 + scale) + shift` in one operator: a chunk has one timestep, so the two rows are just
 * the weight and the bias of an affine layer norm.
 */
function modulatedNorm(
  g: GraphBuilder,
  x: Tensor,
  shift: Tensor,
  scale: Tensor,
  epsilon: number,
): Tensor {
  return layerNormalization(x, add(scale, g.scalar(1)), shift, epsilon);
}

/** softmax(q·kᵀ/√headDim + bias)·v: q, k, v [1, …, D]. */
function headAttention(config: TransformerConfig, inputs: AttentionInputs): Tensor {
  const { num_attention_heads: heads, attention_head_dim: headSize } = config;
  const bias = inputs.bias !== undefined;
  return attention({ heads, headSize, scale: 1 / Math.sqrt(headSize), bias }, inputs);
}

/** Steps 1 and 2, keys and values: `hidden` [L, D] → `keys` (rotated), `values` [1, L, D]. */
export const keysValuesGraph = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new GraphBuilder('keys-values');
  const d = transformerDim(config);
  const pairs = config.attention_head_dim / 2;
  const hidden = g.input('hidden', 'float32', ['L', d]);
  const [shift1, scale1] = modulationRows(g, config) as [Tensor, Tensor];
  const keyNorm = g.input('norm_k', 'float32', [d]);
  const cos = g.input('cos', 'float32', [1, 'L', pairs]);
  const sin = g.input('sin', 'float32', [1, 'L', pairs]);
  const y = modulatedNorm(g, hidden, shift1, scale1, config.eps); // [L, D]
  const keys = linear(g, 'to_k', specs['attn1.to_k'], y); // [L, D]
  const normed = reshape(rmsNormalization(keys, keyNorm, config.eps), [1, 'L', d]);
  g.output('keys', rotaryEmbedding(normed, cos, sin, config.num_attention_heads));
  g.output('values', reshape(linear(g, 'to_v', specs['attn1.to_v'], y), [1, 'L', d]));
  return g.build();
});

/**
 * Steps 1 and 2, queries: `hidden` [L, D] attends to `keys`, `values` [1, S, D] of the whole clip.
 * The chunk is also the query chunk, so that no dispatch grows with the clip squared.
 */
export const selfAttentionGraph = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new GraphBuilder('self-attention');
  const d = transformerDim(config);
  const heads = config.num_attention_heads;
  const pairs = config.attention_head_dim / 2;
  const hidden = g.input('hidden', 'float32', ['L', d]);
  const [shift1, scale1, gate1] = modulationRows(g, config) as [Tensor, Tensor, Tensor];
  const queryNorm = g.input('norm_q', 'float32', [d]);
  const cos = g.input('cos', 'float32', [1, 'L', pairs]);
  const sin = g.input('sin', 'float32', [1, 'L', pairs]);
  const keys = g.input('keys', 'float32', [1, 'S', d]);
  const values = g.input('values', 'float32', [1, 'S', d]);
  const y = modulatedNorm(g, hidden, shift1, scale1, config.eps); // [L, D]
  const queries = linear(g, 'to_q', specs['attn1.to_q'], y); // [L, D]
  const normed = reshape(rmsNormalization(queries, queryNorm, config.eps), [1, 'L', d]);
  const rotated = rotaryEmbedding(normed, cos, sin, heads);
  const attended = headAttention(config, { q: rotated, k: keys, v: values }); // [1, L, D]
  const epilogue = { residual: hidden, gate: gate1 };
  const out = linear(g, 'to_out', specs['attn1.to_out.0'], reshape(attended, ['L', d]), epilogue);
  g.output('result', out); // [L, D]
  return g.build();
});

/**
 * Steps 3 and 4: cross-attention to the text, then the feed-forward network.
 *
 * `text_bias` [1, 1, L, T] is 0 but for the last key, which stands for all the empty rows of the
 * text at once: its logit is raised by ln(count), exactly as if it were there count times.
 */
export const crossFeedForwardGraph = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new GraphBuilder('cross-attention-feed-forward');
  const d = transformerDim(config);
  const hidden = g.input('hidden', 'float32', ['L', d]);
  const rows = modulationRows(g, config);
  const [shift2, scale2, gate2] = rows.slice(3) as [Tensor, Tensor, Tensor];
  const normWeight = g.input('norm2.weight', 'float32', [d]);
  const normBias = g.input('norm2.bias', 'float32', [d]);
  const queryNorm = g.input('norm_q', 'float32', [d]);
  const keys = g.input('text_keys', 'float32', [1, 'T', d]);
  const values = g.input('text_values', 'float32', [1, 'T', d]);
  const bias = g.input('text_bias', 'float32', [1, 1, 'L', 'T']);

  const y = layerNormalization(hidden, normWeight, normBias, config.eps); // [L, D]
  const queries = linear(g, 'to_q', specs['attn2.to_q'], y); // [L, D]
  const normed = reshape(rmsNormalization(queries, queryNorm, config.eps), [1, 'L', d]);
  const attended = headAttention(config, { q: normed, k: keys, v: values, bias }); // [1, L, D]
  const x = linear(g, 'to_out', specs['attn2.to_out.0'], reshape(attended, ['L', d]), {
    residual: hidden,
  }); // [L, D]

  const z = modulatedNorm(g, x, shift2, scale2, config.eps); // [L, D]
  const inner = linear(g, 'ffn_in', specs['ffn.net.0.proj'], z, { activation: 'gelu' }); // [L, ffn]
  const ffn = linear(g, 'ffn_out', specs['ffn.net.2'], inner, { residual: x, gate: gate2 });
  g.output('result', ffn); // [L, D]
  return g.build();
});

/** What all blocks together added: `hidden` − `embedded` → `residual`, [L, D] each. */
export const residualGraph = memoised((d: number) => {
  const g = new GraphBuilder('residual');
  const hidden = g.input('hidden', 'float32', ['L', d]);
  const embedded = g.input('embedded', 'float32', ['L', d]);
  g.output('residual', sub(hidden, embedded));
  return g.build();
});

/** The end of the blocks without running them: `embedded` + `residual` → `hidden`, [L, D] each. */
export const reuseGraph = memoised((d: number) => {
  const g = new GraphBuilder('reuse');
  const embedded = g.input('embedded', 'float32', ['L', d]);
  const residual = g.input('residual', 'float32', ['L', d]);
  g.output('hidden', add(embedded, residual));
  return g.build();
});

/**
 * Head: `hidden` [L, D] → `velocity` [L, C·ph·pw], modulated by the un-projected `temb` [1, D];
 * `scale_shift_table` [2, D] has the shift first.
 */
export const headGraph = memoised((config: TransformerConfig, spec: LinearSpec) => {
  const g = new GraphBuilder('head');
  const d = transformerDim(config);
  const hidden = g.input('hidden', 'float32', ['L', d]);
  const table = g.input('scale_shift_table', 'float32', [2, d]);
  const temb = g.input('temb', 'float32', [1, d]);
  const [shift, scale] = split(add(table, temb), 0, [1, 1]).map((row) => reshape(row, [d])) as [
    Tensor,
    Tensor,
  ];
  const y = modulatedNorm(g, hidden, shift, scale, config.eps); // [L, D]
  g.output('velocity', linear(g, 'proj_out', spec, y)); // [L, C·ph·pw]
  return g.build();
});
