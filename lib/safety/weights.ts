import { at } from '../contract';
import type { Bindings, DeviceTensor, Scope } from '../gpu';
import { type Checkpoint, checkTensors } from '../weights';
import { type CheckerConfig, invalid, type Layout } from './config';

/** Sizes of a vision transformer. */
export interface Architecture {
  /** Side of the square that it sees, and of its patches, in pixels. */
  readonly imageSize: number;
  readonly patchSize: number;
  readonly channels: number;
  readonly blocks: number;
  readonly heads: number;
  /** Channels between the two layers of the feed-forward part. */
  readonly hidden: number;
  readonly epsilon: number;
}

/** Values of a patch: three colours. */
export const patchValues = ({ patchSize }: Architecture) => 3 * patchSize * patchSize;
export const patchCount = ({ imageSize, patchSize }: Architecture) => (imageSize / patchSize) ** 2;
/** Logits of the head: safe and unsafe, in the file's order. */
export const labelCount = 2;

/** Tensors of the network by timm's names, with their shapes as the graph takes them. */
export function weightShapes(vit: Architecture): Map<string, readonly number[]> {
  const { channels: d, hidden } = vit;
  const norm = (name: string): [string, number[]][] => [
    [`${name}.weight`, [d]],
    [`${name}.bias`, [d]],
  ];
  const linear = (name: string, inputs: number, outputs: number): [string, number[]][] => [
    [`${name}.weight`, [outputs, inputs]],
    [`${name}.bias`, [outputs]],
  ];
  const block = (i: number) => [
    ...norm(`blocks.${i}.norm1`),
    ...linear(`blocks.${i}.attn.qkv`, d, 3 * d), // rows: queries, keys, values
    ...linear(`blocks.${i}.attn.proj`, d, d),
    ...norm(`blocks.${i}.norm2`),
    ...linear(`blocks.${i}.mlp.fc1`, d, hidden),
    ...linear(`blocks.${i}.mlp.fc2`, hidden, d),
  ];
  return new Map([
    ['cls_token', [1, 1, d]],
    ['pos_embed', [1, 1 + patchCount(vit), d]],
    ...linear('patch_embed.proj', patchValues(vit), d), // in the file [D, 3, P, P]
    ...Array.from({ length: vit.blocks }, (_, i) => block(i)).flat(),
    ...norm('norm'),
    ...linear('head', d, labelCount),
  ]);
}

/** Names in the transformers layout for parts of timm's names. */
const transformersNames: readonly (readonly [RegExp, string])[] = [
  [/^cls_token$/, 'vit.embeddings.cls_token'],
  [/^pos_embed$/, 'vit.embeddings.position_embeddings'],
  [/^patch_embed\.proj\b/, 'vit.embeddings.patch_embeddings.projection'],
  [/^blocks\.(\d+)\.norm1\b/, 'vit.encoder.layer.$1.layernorm_before'],
  [/^blocks\.(\d+)\.norm2\b/, 'vit.encoder.layer.$1.layernorm_after'],
  [/^blocks\.(\d+)\.attn\.qkv\b/, 'vit.encoder.layer.$1.attention.attention.*'],
  [/^blocks\.(\d+)\.attn\.proj\b/, 'vit.encoder.layer.$1.attention.output.dense'],
  [/^blocks\.(\d+)\.mlp\.fc1\b/, 'vit.encoder.layer.$1.intermediate.dense'],
  [/^blocks\.(\d+)\.mlp\.fc2\b/, 'vit.encoder.layer.$1.output.dense'],
  [/^norm\b/, 'vit.layernorm'],
  [/^head\b/, 'classifier'],
];

/** The tensors of a file that make one of ours, one after another along the first dimension. */
function storedNames(layout: Layout, name: string): string[] {
  if (layout === 'timm') return [name];
  const [pattern, replacement] = transformersNames.find(([known]) => known.test(name)) ?? [
    /$^/,
    '',
  ];
  const stored = name.replace(pattern, replacement);
  if (!stored.includes('*')) return [stored];
  return ['query', 'key', 'value'].map((part) => stored.replace('*', part));
}

/** The shape of each tensor of the file. */
function storedShapes(layout: Layout, vit: Architecture): Map<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>();
  for (const [name, [rows = 0, ...rest]] of weightShapes(vit)) {
    const parts = storedNames(layout, name);
    const isPatch = name === 'patch_embed.proj.weight';
    const inner = isPatch ? [3, vit.patchSize, vit.patchSize] : rest;
    for (const part of parts) shapes.set(part, [rows / parts.length, ...inner]);
  }
  return shapes;
}

/**
 * The sizes of a checker, from its tensors; all tensors are there in the shapes that follow.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`, and `MODEL_CONFIG_INVALID` where configuration and
 * tensors differ
 */
export function readArchitecture(config: CheckerConfig, checkpoint: Checkpoint): Architecture {
  const shape = (name: string) => checkpoint.shape(at(storedNames(config.layout, name), 0));
  const [channels = 0, , patchSize = 0] = shape('patch_embed.proj.weight');
  const [hidden = 0] = shape('blocks.0.mlp.fc1.weight');
  const { size: imageSize } = config.preprocessing;
  const has = (name: string) => checkpoint.has(at(storedNames(config.layout, name), 0));
  let blocks = 0;
  while (has(`blocks.${blocks}.norm1.weight`)) blocks += 1;
  const heads = config.heads ?? channels / 64;
  if (!Number.isInteger(heads) || channels % heads !== 0) {
    throw invalid(`Its ${channels} channels do not split into ${heads} heads.`);
  }
  if (patchSize < 1 || imageSize % patchSize !== 0) {
    throw invalid(`Its ${imageSize} pixels do not split into patches of ${patchSize}.`);
  }
  const { epsilon } = config;
  const vit = { imageSize, patchSize, channels, blocks, heads, hidden, epsilon };
  checkTensors(checkpoint, storedShapes(config.layout, vit), 'safety checker');
  return vit;
}

/** Reads all weights into device memory of a scope, by timm's names. */
export async function loadWeights(
  scope: Scope,
  layout: Layout,
  vit: Architecture,
  checkpoint: Pick<Checkpoint, 'read'>,
  signal: AbortSignal,
): Promise<Bindings> {
  const weights: Record<string, DeviceTensor> = {};
  for (const [name, dims] of weightShapes(vit)) {
    signal.throwIfAborted();
    const parts: Float32Array[] = [];
    for (const part of storedNames(layout, name)) parts.push(await checkpoint.read(part));
    const data = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
    let offset = 0;
    for (const part of parts) {
      data.set(part, offset);
      offset += part.length;
    }
    weights[name] = scope.float32(dims, 'weights', data);
  }
  return weights;
}
