import {
  add,
  affine,
  attention,
  Graph,
  gelu,
  geluErf,
  type LinearLayer,
  layerNorm,
  linear,
  memoised,
  modulate,
  mul,
  rmsNorm,
  rotary,
  row,
  silu,
  sub,
  type Value,
} from '../../../graph';
import type { LatentSize } from '../../../pipeline/latents';
import { type LinearSpec, layerOf } from '../../layers/linear';
import { type TransformerConfig, transformerDim } from '../config-schemas';
import { tokenOrder } from '../tokens';

/*
 * The Wan transformer, in the forward order of the README. Both executors compute it from this text. S tokens, T rows
 * of text, D = heads·headDim. What stands once may be computed more often: `y` is needed before the keys and again
 * before the queries.
 */

/** The linear layers of one block, by their diffusers names. */
const textLinears = [
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
/** Those of an image branch beside them. */
const imageLinears = ['attn2.add_k_proj', 'attn2.add_v_proj'] as const;
export type BlockLinear = (typeof textLinears)[number] | (typeof imageLinears)[number];
export type BlockSpecs = Readonly<Partial<Record<BlockLinear, LinearSpec>>>;

/** The linear layers of one block. */
export function blockLinears({ image_dim }: TransformerConfig): readonly BlockLinear[] {
  return image_dim ? [...textLinears, ...imageLinears] : textLinears;
}

function blockLayer(specs: BlockSpecs, name: BlockLinear): LinearLayer {
  const spec = specs[name];
  if (!spec) throw new TypeError(`the block has no layer ${name}`);
  return layerOf(name, spec);
}

/** Patch embedding: `tokens` [S, C·ph·pw] → `hidden` [S, D]. */
export const patchEmbedding = memoised((spec: LinearSpec) => {
  const g = new Graph('patch-embedding');
  const tokens = g.input('tokens', ['S', spec.inFeatures]);
  g.output('hidden', linear(tokens, layerOf('patch_embedding', spec)));
  return g;
});

/**
 * The same for the channels that a clip is conditioned by, which lie behind those of the latents: `condition`
 * [S, C·ph·pw], whose part of the embedding is added to `hidden` [S, D].
 */
export const conditionEmbedding = memoised((spec: LinearSpec, d: number) => {
  const g = new Graph('condition-embedding');
  const hidden = g.input('hidden', ['S', d]);
  const condition = g.input('condition', ['S', spec.inFeatures]);
  g.update(hidden, add(hidden, linear(condition, layerOf('condition_embedding', spec))));
  return g;
});

/** Rounding of the norms around an image's features. */
const imageEpsilon = 1e-5;

/**
 * Image: `features` [I, C] of the image encoder → `image` [I, D], what the blocks attend to beside the text.
 */
export const imageEmbedding = memoised(
  (config: TransformerConfig, specs: { linear1: LinearSpec; linear2: LinearSpec }) => {
    const g = new Graph('image-embedding');
    const { inFeatures: c } = specs.linear1;
    const d = transformerDim(config);
    const norm = (name: string, width: number) =>
      [g.input(`${name}.weight`, [width]), g.input(`${name}.bias`, [width])] as const;
    const features = g.input('features', ['I', c]);
    const x = affine(layerNorm(features, imageEpsilon), ...norm('norm1', c)); // [I, C]
    const inner = geluErf(linear(x, layerOf('image_embedder.linear_1', specs.linear1))); // [I, C]
    const y = linear(inner, layerOf('image_embedder.linear_2', specs.linear2)); // [I, D]
    g.output('image', affine(layerNorm(y, imageEpsilon), ...norm('norm2', d)));
    return g;
  },
);

/**
 * Sinusoidal features of a timestep: `[cos(t·f) ‖ sin(t·f)]` with `f_i = 10000^(−i/half)`. The frequencies
 * are rounded to f32 first, as diffusers' `get_timestep_embedding` computes them.
 */
export function sinusoid(timestep: number, features: number): Float32Array {
  const half = features / 2;
  const out = new Float32Array(features);
  for (let i = 0; i < half; i++) {
    const frequency = Math.fround(Math.exp((-Math.log(10000) * i) / half));
    out[i] = Math.cos(timestep * frequency);
    out[half + i] = Math.sin(timestep * frequency);
  }
  return out;
}

/**
 * Time: `sinusoid` [1, freq] → `temb` [1, D] for the head and `modulation` [6, D] for the blocks. One row: a clip has
 * only the timesteps 0 and t, and each chunk of tokens has one of them.
 */
export const timeEmbedding = memoised(
  (
    config: TransformerConfig,
    specs: { linear1: LinearSpec; linear2: LinearSpec; projection: LinearSpec },
  ) => {
    const g = new Graph('time-embedding');
    const sinusoid = g.input('sinusoid', [1, config.freq_dim]);
    const inner = silu(linear(sinusoid, layerOf('time_embedder.linear_1', specs.linear1))); // [1, D]
    const temb = linear(inner, layerOf('time_embedder.linear_2', specs.linear2)); // [1, D]
    const projected = linear(silu(temb), layerOf('time_proj', specs.projection)); // [1, 6·D]
    g.output('temb', temb);
    g.output('modulation', projected, [6, transformerDim(config)]);
    return g;
  },
);

/** Text: `embeds` [T, textDim] → `context` [T, D]. */
export const textEmbedding = memoised((specs: { linear1: LinearSpec; linear2: LinearSpec }) => {
  const g = new Graph('text-embedding');
  const embeds = g.input('embeds', ['T', specs.linear1.inFeatures]);
  const inner = gelu(linear(embeds, layerOf('text_embedder.linear_1', specs.linear1))); // [T, D]
  g.output('context', linear(inner, layerOf('text_embedder.linear_2', specs.linear2))); // [T, D]
  return g;
});

/**
 * Rotary tables over (frame, row, column), each [S, headDim/2]. The head's pairs are
 * split into t, h, w parts of d − 4⌊d/6⌋, 2⌊d/6⌋ and 2⌊d/6⌋ channels; angles in double precision.
 *
 * @param order of the frames in the tokens; their own when absent
 */
export function rotaryTables(
  config: TransformerConfig,
  size: LatentSize,
  order: readonly number[] = tokenOrder(size.frames, []),
): { cos: Float32Array; sin: Float32Array } {
  const headDim = config.attention_head_dim;
  const [, ph, pw] = config.patch_size;
  const spatial = 2 * Math.floor(headDim / 6);
  const parts = [headDim - 2 * spatial, spatial, spatial] as const;
  const extent = [size.frames, size.height / ph, size.width / pw] as const;
  const pairs = headDim / 2;
  const tokens = extent[0] * extent[1] * extent[2];
  const cos = new Float32Array(tokens * pairs);
  const sin = new Float32Array(tokens * pairs);
  const axes = parts.map((channels, axis) => axisTables(channels, extent[axis] as number));
  let index = 0;
  for (const f of order) {
    for (let y = 0; y < extent[1]; y++) {
      for (let x = 0; x < extent[2]; x++) {
        const position = [f, y, x];
        for (const [axis, table] of axes.entries()) {
          const at = (position[axis] as number) * table.pairs;
          for (let i = 0; i < table.pairs; i++) {
            cos[index] = table.cos[at + i] as number;
            sin[index] = table.sin[at + i] as number;
            index += 1;
          }
        }
      }
    }
  }
  return { cos, sin };
}

/** Of one axis, each [positions, channels/2]: tokens that share a position share its row. */
function axisTables(channels: number, positions: number) {
  const pairs = channels / 2;
  const cos = new Float32Array(positions * pairs);
  const sin = new Float32Array(positions * pairs);
  for (let position = 0; position < positions; position++) {
    for (let pair = 0; pair < pairs; pair++) {
      const angle = position * 10000 ** ((-2 * pair) / channels);
      cos[position * pairs + pair] = Math.cos(angle);
      sin[position * pairs + pair] = Math.sin(angle);
    }
  }
  return { pairs, cos, sin };
}

/** `scale_shift_table + modulation` [6, D]: shift₁, scale₁, gate₁, shift₂, scale₂, gate₂. */
function modulationTable(g: Graph, d: number): Value {
  return add(g.input('scale_shift_table', [6, d]), g.input('modulation', [6, d]));
}

/** Steps 1 and 2 of a block: self-attention. Updates the residual stream `x` [S, D]. */
export const selfAttention = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new Graph('self-attention');
  const { num_attention_heads: heads, attention_head_dim: headDim, eps } = config;
  const d = transformerDim(config);
  const layer = (name: BlockLinear) => blockLayer(specs, name);
  const x = g.input('x', ['S', d]);
  const m = modulationTable(g, d);
  const [shift1, scale1, gate1] = [row(m, 0), row(m, 1), row(m, 2)]; // [D] each
  const normQ = g.input('attn1.norm_q', [d]);
  const normK = g.input('attn1.norm_k', [d]);
  const cos = g.input('cos', ['S', headDim / 2]);
  const sin = g.input('sin', ['S', headDim / 2]);

  const y = modulate(layerNorm(x, eps), scale1, shift1); // [S, D]
  const q = rotary(rmsNorm(linear(y, layer('attn1.to_q')), normQ, eps), cos, sin, heads); // [S, D]
  const k = rotary(rmsNorm(linear(y, layer('attn1.to_k')), normK, eps), cos, sin, heads); // [S, D]
  const v = linear(y, layer('attn1.to_v')); // [S, D]
  const attended = attention(q, k, v, { heads }); // [S, D]
  g.update(x, add(x, mul(linear(attended, layer('attn1.to_out.0')), gate1)));
  return g;
});

/**
 * Steps 3 and 4 of a block: cross-attention to the text `context` [T, D], then the feed-forward network. Updates the
 * residual stream `x` [S, D].
 *
 * The last key stands for all the empty rows of the text at once: its logit is raised by `lastBias` = ln(count),
 * exactly as if it were there count times.
 *
 * With an image branch the same queries attend to `image` [I, D], too: two softmaxes, whose results are added.
 */
export const crossFeedForward = memoised((config: TransformerConfig, specs: BlockSpecs) => {
  const g = new Graph('cross-attention-feed-forward');
  const { num_attention_heads: heads, eps } = config;
  const d = transformerDim(config);
  const layer = (name: BlockLinear) => blockLayer(specs, name);
  const x = g.input('x', ['S', d]);
  const context = g.input('context', ['T', d]);
  const m = modulationTable(g, d);
  const [shift2, scale2, gate2] = [row(m, 3), row(m, 4), row(m, 5)]; // [D] each
  const weight = g.input('norm2.weight', [d]);
  const bias = g.input('norm2.bias', [d]);
  const normQ = g.input('attn2.norm_q', [d]);
  const normK = g.input('attn2.norm_k', [d]);

  const k = rmsNorm(linear(context, layer('attn2.to_k')), normK, eps); // [T, D]
  const v = linear(context, layer('attn2.to_v')); // [T, D]
  const y = affine(layerNorm(x, eps), weight, bias); // [S, D]
  const q = rmsNorm(linear(y, layer('attn2.to_q')), normQ, eps); // [S, D]
  const toText = attention(q, k, v, { heads, lastBias: 'lastBias' }); // [S, D]
  const attended = config.image_dim ? add(toText, toImage(q)) : toText; // [S, D]
  const after = add(x, linear(attended, layer('attn2.to_out.0'))); // [S, D]

  const z = modulate(layerNorm(after, eps), scale2, shift2); // [S, D]
  const inner = gelu(linear(z, layer('ffn.net.0.proj'))); // [S, ffn]
  g.update(x, add(after, mul(linear(inner, layer('ffn.net.2')), gate2)));
  return g;

  function toImage(q: Value): Value {
    const image = g.input('image', ['I', d]);
    const norm = g.input('attn2.norm_added_k', [d]);
    const k = rmsNorm(linear(image, layer('attn2.add_k_proj')), norm, eps); // [I, D]
    return attention(q, k, linear(image, layer('attn2.add_v_proj')), { heads }); // [S, D]
  }
});

/** What all blocks together added to the embedded tokens: `residual` [S, D], which held these, becomes `x` − it. */
export const blocksResidual = memoised((d: number) => {
  const g = new Graph('residual');
  const x = g.input('x', ['S', d]);
  const embedded = g.input('residual', ['S', d]);
  g.update(embedded, sub(x, embedded));
  return g;
});

/**
 * Head: `x` [S, D] → `velocity` [S, C·ph·pw], modulated by the un-projected `temb` [1, D]; `scale_shift_table` [2, D]
 * has the shift first.
 *
 * @param reuses the blocks were not run: what they added before, `residual` [S, D], is added to the embedded tokens x
 */
export const head = memoised((config: TransformerConfig, spec: LinearSpec, reuses: boolean) => {
  const g = new Graph('head');
  const d = transformerDim(config);
  const x = g.input('x', ['S', d]);
  const after = reuses ? add(x, g.input('residual', ['S', d])) : x; // [S, D]
  const table = g.input('scale_shift_table', [2, d]);
  const m = add(table, g.input('temb', [1, d])); // [2, D]
  const [shift, scale] = [row(m, 0), row(m, 1)]; // [D] each
  const y = modulate(layerNorm(after, config.eps), scale, shift); // [S, D]
  g.output('velocity', linear(y, layerOf('proj_out', spec))); // [S, C·ph·pw]
  return g;
});
