import {
  type Backend,
  type Bindings,
  CountingBackend,
  type DeviceBytes,
  handleMessages,
  openExecutor,
  Scope,
} from '../../../gpu';
import type { Compute, KernelChoice } from '../../../gpu/kernels';
import {
  add,
  affine,
  attention,
  Graph,
  geluErf,
  layerNorm,
  linear,
  memoised,
  type Value,
} from '../../../graph';
import type { Frame } from '../../../pipeline/latents';
import { bicubic, cutSquares, normalise } from '../../../safety/preprocess';
import { patchify } from '../../../safety/vit';
import type { Checkpoint } from '../../../weights';
import { BufferSet, bindLinear, freshMemory, LayerLoader, layerOf } from '../../layers/linear';
import { zeroCheckpoint } from '../../layers/shape-checkpoint';
import type { TensorShapes } from '../../layers/tensors';
import { featureRows, type ImageEncoderConfig } from './config';

/*
 * The vision tower of CLIP ViT-H (Radford et al., arXiv:2103.00020; `models/clip/modeling_clip.py` of
 * huggingface/transformers, whose tensor names these are). The features are what goes into its last layer: that one,
 * the norm behind it and the projection are never read. All in f32.
 */

/** The linear layers of one layer. */
const layerLinears = [
  'self_attn.q_proj',
  'self_attn.k_proj',
  'self_attn.v_proj',
  'self_attn.out_proj',
  'mlp.fc1',
  'mlp.fc2',
] as const;

/** Layers that are computed: all but the last one. */
const usedLayers = ({ num_hidden_layers }: ImageEncoderConfig) => num_hidden_layers - 1;

const layerName = (index: number) => `encoder.layers.${index}`;

/** Every tensor that is read. */
export function imageEncoderTensors(config: ImageEncoderConfig): TensorShapes {
  const { hidden_size: d, intermediate_size: wide, patch_size: p } = config;
  const shapes: TensorShapes = new Map();
  const layer = (name: string, ...weight: number[]) => {
    shapes.set(`${name}.weight`, weight);
    shapes.set(`${name}.bias`, weight.slice(0, 1));
  };
  shapes.set('embeddings.class_embedding', [d]);
  shapes.set('embeddings.patch_embedding.weight', [d, 3, p, p]);
  shapes.set('embeddings.position_embedding.weight', [featureRows(config), d]);
  layer('pre_layrnorm', d);
  for (let i = 0; i < usedLayers(config); i++) {
    const name = layerName(i);
    layer(`${name}.layer_norm1`, d);
    for (const role of layerLinears.slice(0, 4)) layer(`${name}.${role}`, d, d);
    layer(`${name}.layer_norm2`, d);
    layer(`${name}.mlp.fc1`, wide, d);
    layer(`${name}.mlp.fc2`, d, wide);
  }
  return shapes;
}

/** A plain linear layer. */
const plain = (name: string, inFeatures: number, outFeatures: number, bias = true) =>
  layerOf(name, { inFeatures, outFeatures, precision: 'f32', bias, lora: false });

/** A layer norm with the tensors of its name. */
const norm = (
  g: Graph,
  x: Value,
  name: string,
  { hidden_size: d, layer_norm_eps }: ImageEncoderConfig,
) =>
  affine(
    layerNorm(x, layer_norm_eps),
    g.input(`${name}.weight`, [d]),
    g.input(`${name}.bias`, [d]),
  );

/**
 * `patches` [R, 3·p²], zeros for the class token, are added to `table` [R, D], which has class token and positions;
 * `x` [R, D] is that, normed.
 */
const embedding = memoised((config: ImageEncoderConfig) => {
  const g = new Graph('image-encoder-embedding');
  const { hidden_size: d, patch_size: p } = config;
  const table = g.input('table', ['R', d]);
  const patches = g.input('patches', ['R', 3 * p * p]);
  // The table is no residual that the product replaces: WebGPU would read and write it in one dispatch.
  const embedded = add(linear(patches, plain('patch_embedding', 3 * p * p, d, false)), table);
  g.output('x', norm(g, embedded, 'pre_layrnorm', config)); // [R, D]
  return g;
});

/** One layer, on `x` [R, D], which it updates: `x + MHA(LN(x))`, then `x + MLP(LN(x))`. */
const encoderLayer = memoised((config: ImageEncoderConfig) => {
  const g = new Graph('image-encoder-layer');
  const { hidden_size: d, intermediate_size: wide, num_attention_heads: heads } = config;
  const x = g.input('x', ['R', d]);
  const y = norm(g, x, 'layer_norm1', config); // [R, D]
  const q = linear(y, plain('self_attn.q_proj', d, d)); // [R, D]
  const k = linear(y, plain('self_attn.k_proj', d, d)); // [R, D]
  const v = linear(y, plain('self_attn.v_proj', d, d)); // [R, D]
  const attended = attention(q, k, v, { heads }); // [R, D]
  const after = add(x, linear(attended, plain('self_attn.out_proj', d, d))); // [R, D]
  const z = norm(g, after, 'layer_norm2', config); // [R, D]
  const inner = geluErf(linear(z, plain('mlp.fc1', d, wide))); // [R, 4D]
  g.update(x, add(after, linear(inner, plain('mlp.fc2', wide, d))));
  return g;
});

const mean = [0.48145466, 0.4578275, 0.40821073];
const std = [0.26862954, 0.26130258, 0.27577711];

/**
 * A picture as the encoder sees it: brought to its square by PIL's bicubic filter, in bytes, and normalised.
 *
 * @returns [3, size, size]
 */
export function encoderPixels(
  { data, width, height }: Frame,
  { image_size: size, crops }: ImageEncoderConfig,
): Float32Array {
  const plane = width * height;
  const fit = crops ? ('middle' as const) : ('stretch' as const);
  const preprocessing = { size, kernel: bicubic, fit, mean, std };
  const channel = (c: number) => {
    const values = data.subarray(c * plane, (c + 1) * plane);
    return Uint8ClampedArray.from(values, (value) => Math.round((value + 1) * 127.5));
  };
  const { values } = cutSquares({ width, height, channel }, preprocessing);
  return normalise(values, preprocessing);
}

/**
 * Features of a picture, [R, D]: what the second to last layer gives. Layers are written one after another into the same
 * buffers; everything is freed when it returns or throws.
 *
 * @param pixels [3, size, size] of {@link encoderPixels}
 * @throws KinoraError as the checkpoint's reads do, `OUT_OF_MEMORY`; the signal's reason
 */
export async function encodeImage(
  backend: Backend,
  checkpoint: Checkpoint,
  config: ImageEncoderConfig,
  pixels: Float32Array,
  signal?: AbortSignal,
): Promise<Float32Array> {
  const { hidden_size: d, image_size: imageSize, patch_size: patchSize } = config;
  const rows = featureRows(config);
  const scope = new Scope(backend);
  const graphs = [embedding(config), encoderLayer(config)];
  const sizes = { chunks: [], sizes: { R: rows }, classed: new Set<string>(), ranks: new Map() };
  const executor = await openExecutor(backend, graphs, sizes, 'f32');
  const reading = { precision: 'f32', ...(signal && { signal }) } as const;
  try {
    const patches = patchify(pixels, { imageSize, patchSize });
    const values = 3 * patchSize ** 2;
    const table = (await checkpoint.read('embeddings.position_embedding.weight')).slice();
    const classToken = await checkpoint.read('embeddings.class_embedding');
    for (const [i, value] of classToken.entries()) table[i] = (table[i] ?? 0) + value;
    const padded = new Float32Array(rows * values);
    padded.set(patches, values);
    const x = scope.float32([rows, d], 'activations');
    const loader = new LayerLoader(freshMemory(scope), checkpoint, reading);
    await executor.run(embedding(config), {
      table: scope.float32([rows, d], 'activations', table),
      patches: scope.float32([rows, values], 'activations', padded),
      x,
      ...bindLinear('patch_embedding', await loader.linear('embeddings.patch_embedding')),
      ...(await normOf(loader, 'pre_layrnorm')),
    });
    const buffers = new BufferSet(scope);
    for (let index = 0; index < usedLayers(config); index++) {
      signal?.throwIfAborted();
      const name = layerName(index);
      const loader = new LayerLoader(buffers.for(name), checkpoint, reading);
      const bound: Bindings[] = [
        await normOf(loader, 'layer_norm1', name),
        await normOf(loader, 'layer_norm2', name),
      ];
      for (const role of layerLinears) {
        bound.push(bindLinear(role, await loader.linear(`${name}.${role}`)));
      }
      await executor.run(encoderLayer(config), { x, ...Object.assign({}, ...bound) });
      await handleMessages();
    }
    await executor.finish();
    return await backend.read(x);
  } finally {
    executor.dispose();
    scope.dispose();
  }

  async function normOf(loader: LayerLoader, role: string, prefix?: string) {
    const name = prefix ? `${prefix}.${role}` : role;
    const weight = await loader.tensor(`${name}.weight`, [d]);
    const bias = await loader.tensor(`${name}.bias`, [d]);
    return { [`${role}.weight`]: weight, [`${role}.bias`]: bias };
  }
}

/**
 * Counts what {@link encodeImage} takes on a device: one layer tells the peak.
 *
 * @param compute the device that compiles the kernels; one without limits when absent
 * @throws Refusal where kernels of our own are to compute and do not
 */
export async function countImageEncoder(
  config: ImageEncoderConfig,
  kernels: KernelChoice | null,
  compute?: Compute | null,
): Promise<DeviceBytes> {
  const one = { ...config, num_hidden_layers: 2 };
  const backend = new CountingBackend(kernels, compute);
  const pixels = new Float32Array(3 * config.image_size ** 2);
  await encodeImage(backend, zeroCheckpoint(imageEncoderTensors(one), 'f32'), one, pixels);
  return backend.measured();
}
