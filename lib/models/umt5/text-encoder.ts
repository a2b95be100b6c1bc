import { at, KinoraError, type Precision } from '../../contract';
import {
  type Backend,
  type Bindings,
  CountingBackend,
  type DeviceBytes,
  type DeviceTensor,
  handleMessages,
  openExecutor,
  Scope,
} from '../../gpu';
import type { Compute, KernelChoice } from '../../gpu/kernels';
import {
  add,
  attention,
  Graph,
  gatherHeads,
  gelu,
  linear,
  memoised,
  mul,
  rmsNorm,
} from '../../graph';
import { type Checkpoint, withAliases } from '../../weights';
import { type LayerData, namesUnder, type ReadOptions, readLayer } from '../layers/layer-data';
import {
  BufferSet,
  bindLinear,
  freshMemory,
  LayerLoader,
  type LinearSpec,
  layerOf,
  specOf,
} from '../layers/linear';
import { zeroCheckpoint } from '../layers/shape-checkpoint';
import {
  type TextEncoderConfig,
  textEncoderAliases,
  textEncoderTensors,
} from './text-encoder-config';

/*
 * The encoder of UMT5-XXL (arXiv:2304.09151): `models/umt5/modeling_umt5.py` of huggingface/transformers,
 * whose tensor names these are, and `wan/modules/t5.py` of Wan-Video/Wan2.2. No layer has a bias. The
 * residual stream and the products stay in f32: in f16 they overflow.
 */

type Tensor = DeviceTensor<'float32'>;

/** The linear layers of one encoder layer, by their transformers names. */
const layerLinears = {
  q: 'layer.0.SelfAttention.q',
  k: 'layer.0.SelfAttention.k',
  v: 'layer.0.SelfAttention.v',
  o: 'layer.0.SelfAttention.o',
  wi_0: 'layer.1.DenseReluDense.wi_0',
  wi_1: 'layer.1.DenseReluDense.wi_1',
  wo: 'layer.1.DenseReluDense.wo',
} as const;
type LayerLinear = keyof typeof layerLinears;

/**
 * One layer, on `hidden` [T, d], which it updates. Attention is not scaled by 1/√d. The bias comes from a table of
 * relative positions that each layer has for itself (in T5 the first layer's table serves all).
 */
const encoderLayer = memoised(
  (config: TextEncoderConfig, specs: Readonly<Record<LayerLinear, LinearSpec>>) => {
    const g = new Graph('text-encoder-layer');
    const { d_model: d, num_heads: heads, layer_norm_epsilon: epsilon } = config;
    const layer = (name: LayerLinear) => layerOf(name, specs[name]);
    const hidden = g.input('hidden', ['T', d]);
    const norm1 = g.input('norm1', [d]);
    const norm2 = g.input('norm2', [d]);
    const table = g.input('relative_bias', [config.relative_attention_num_buckets, heads]);
    const bias = gatherHeads(table, g.input('buckets', ['T', 'T'])); // [heads, T, T]

    const y = rmsNorm(hidden, norm1, epsilon); // [T, d]
    const [q, k, v] = [linear(y, layer('q')), linear(y, layer('k')), linear(y, layer('v'))]; // [T, heads·d_kv]
    const attended = attention(q, k, v, { heads, scale: 1, bias }); // [T, heads·d_kv]
    const x = add(hidden, linear(attended, layer('o'))); // [T, d]

    const z = rmsNorm(x, norm2, epsilon); // [T, d]
    const inner = mul(gelu(linear(z, layer('wi_0'))), linear(z, layer('wi_1'))); // [T, d_ff]
    g.update(hidden, add(x, linear(inner, layer('wo'))));
    return g;
  },
);

/** The norm behind the last layer: `hidden` [T, d] → `result` [T, d]. */
const finalNorm = memoised((config: TextEncoderConfig) => {
  const g = new Graph('text-encoder-norm');
  const { d_model: d, layer_norm_epsilon: epsilon } = config;
  g.output('result', rmsNorm(g.input('hidden', ['T', d]), g.input('norm', [d]), epsilon));
  return g;
});

/** The tensors of a layer, as its graph depends on them. */
function layerSpecs(checkpoint: Checkpoint, index: number, options: ReadOptions) {
  const specs = Object.entries(layerLinears).map(([role, path]) => [
    role,
    specOf(checkpoint, `encoder.block.${index}.${path}`, options),
  ]);
  return Object.fromEntries(specs) as Record<LayerLinear, LinearSpec>;
}

/**
 * Buckets of relative positions, [L, L] (query, key), bidirectional (T5's `_relative_position_bucket`):
 * half of them for keys behind the query; near distances exact, far ones logarithmic up to
 * `relative_attention_max_distance`.
 */
export function relativeBuckets(config: TextEncoderConfig, length: number): Int32Array {
  const half = config.relative_attention_num_buckets / 2;
  const exact = Math.floor(half / 2);
  const range = Math.log(config.relative_attention_max_distance / exact);
  const buckets = new Int32Array(length * length);
  for (let query = 0; query < length; query++) {
    for (let key = 0; key < length; key++) {
      const distance = Math.abs(key - query);
      const bucket =
        distance < exact
          ? distance
          : Math.min(
              half - 1,
              exact + Math.trunc((Math.log(distance / exact) / range) * (half - exact)),
            );
      buckets[query * length + key] = bucket + (key > query ? half : 0);
    }
  }
  return buckets;
}

/**
 * The precision of the text encoder, by that of the model. Its layers are on the device one at a time, so that
 * 4 bits would save little memory and make the embeddings less exact.
 */
export function textEncoderPrecision(precision: Precision): Precision {
  return precision === 'int4' ? 'int8' : precision;
}

/**
 * Encodes prompts, each at its own length: padding is masked, so that it changes nothing.
 *
 * The embedding rows are gathered on the CPU: the table is too large for one GPU buffer and a prompt
 * needs few of its rows. Layers are written one after another into the same buffers and run for all prompts; the
 * next one is read while one computes.
 *
 * @param prompts token ids of each prompt, 1 to 512 of them
 * @param reading its precision is the model's; see {@link textEncoderPrecision}
 * @returns embeddings of each prompt, [L, d_model]
 * @throws KinoraError `MODEL_CONFIG_INVALID` when the vocabulary lacks a token; and as the
 * checkpoint's reads do
 */
export async function encodePrompts(
  backend: Backend,
  checkpoint: Checkpoint,
  config: TextEncoderConfig,
  prompts: readonly (readonly number[])[],
  reading: ReadOptions,
): Promise<Float32Array[]> {
  const options = { ...reading, precision: textEncoderPrecision(reading.precision) };
  const { d_model: d } = config;
  const scope = new Scope(backend);
  const layers = Array.from({ length: config.num_layers }, (_, index) =>
    encoderLayer(config, layerSpecs(checkpoint, index, options)),
  );
  const norming = finalNorm(config);
  const executor = await openExecutor(
    backend,
    new Set([...layers, norming]),
    {
      chunks: [],
      sizes: { T: Math.max(0, ...prompts.map(({ length }) => length)) },
      classed: new Set(),
      ranks: new Map(),
    },
    'f32',
  );
  try {
    const states: { hidden: Tensor; buckets: DeviceTensor<'int32'> }[] = [];
    for (const ids of prompts) {
      checkIds(ids, config.vocab_size);
      const rows = await checkpoint.readRows('shared.weight', ids);
      const length = ids.length;
      states.push({
        hidden: scope.float32([length, d], 'activations', rows),
        buckets: scope.tensor(
          'int32',
          [length, length],
          'activations',
          relativeBuckets(config, length),
        ),
      });
    }
    const buffers = new BufferSet(scope);
    const read = (index: number) => readEncoderLayer(checkpoint, config, index, options);
    let next = config.num_layers > 0 ? read(0) : null;
    for (let index = 0; next; index++) {
      const data = await next;
      next = index + 1 < config.num_layers ? read(index + 1) : null;
      // The next iteration awaits this promise and throws its error; until then it counts as handled.
      next?.catch(() => undefined);
      const inputs = await placeLayer(buffers, checkpoint, config, index, options, data);
      const graph = at(layers, index);
      for (const state of states) await executor.run(graph, { ...state, ...inputs });
      await handleMessages();
    }
    const loader = new LayerLoader(freshMemory(scope), checkpoint, options);
    const norm = await loader.tensor('encoder.final_layer_norm.weight', [d]);
    const staged: Promise<Float32Array>[] = [];
    for (const { hidden } of states) {
      const result = scope.float32(hidden.dims, 'activations');
      await executor.run(norming, { hidden, norm, result });
      staged.push(backend.stage(result));
    }
    return await backend.collect(staged);
  } finally {
    executor.dispose();
    scope.dispose();
  }
}

/** The tokenizer's vocabulary and the encoder's come from two files, which need not fit together. */
function checkIds(ids: readonly number[], vocabulary: number): void {
  const unknown = ids.find((id) => id >= vocabulary);
  if (unknown === undefined) return;
  throw new KinoraError(
    'MODEL_CONFIG_INVALID',
    `tokenizer/tokenizer.json gives the token ${unknown}, but the vocab_size of the text encoder is ${vocabulary}.`,
  );
}

/** Reads a layer's tensors together, in the form that is uploaded. */
function readEncoderLayer(
  checkpoint: Checkpoint,
  config: TextEncoderConfig,
  index: number,
  options: ReadOptions,
): Promise<LayerData> {
  const prefix = `encoder.block.${index}.`;
  const names = namesUnder(checkpoint, textEncoderTensors(config), prefix);
  const weights = new Set(Object.values(layerLinears).map((path) => `${prefix}${path}.weight`));
  return readLayer(checkpoint, names, weights, options);
}

/** Writes a layer's weights. */
async function placeLayer(
  buffers: BufferSet,
  checkpoint: Checkpoint,
  config: TextEncoderConfig,
  index: number,
  options: ReadOptions,
  data: LayerData,
): Promise<Bindings> {
  const name = `encoder.block.${index}`;
  const loader = new LayerLoader(buffers.for(name), checkpoint, options, data);
  const { d_model: d, num_heads: heads, relative_attention_num_buckets: count } = config;
  const bound: Bindings[] = [];
  for (const [role, path] of Object.entries(layerLinears)) {
    bound.push(bindLinear(role, await loader.linear(`${name}.${path}`)));
  }
  return {
    ...Object.assign({}, ...bound),
    norm1: await loader.tensor(`${name}.layer.0.layer_norm.weight`, [d]),
    norm2: await loader.tensor(`${name}.layer.1.layer_norm.weight`, [d]),
    relative_bias: await loader.tensor(
      `${name}.layer.0.SelfAttention.relative_attention_bias.weight`,
      [count, heads],
    ),
  };
}

/**
 * Counts what encoding prompts takes on a device. All layers are written into the buffers of the first, so that one of
 * them tells the peak.
 *
 * @param promptTokens tokens of each prompt
 * @param kernels kernels of our own that compute; null where the runtime does
 * @param compute the device that compiles them; one without limits when absent
 * @throws Refusal where they are to compute and do not
 */
export async function countTextEncoder(
  config: TextEncoderConfig,
  precision: Precision,
  promptTokens: readonly number[],
  kernels: KernelChoice | null,
  compute?: Compute | null,
): Promise<DeviceBytes> {
  const one = { ...config, num_layers: 1 };
  const zeros = zeroCheckpoint(textEncoderTensors(one), precision);
  const checkpoint = withAliases(zeros, textEncoderAliases);
  const backend = new CountingBackend(kernels, compute);
  const prompts = promptTokens.map((tokens) => new Array<number>(tokens).fill(0));
  await encodePrompts(backend, checkpoint, one, prompts, { precision });
  return backend.measured();
}
