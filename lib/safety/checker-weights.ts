import { at } from '../contract';
import { type VisionTransformer, visionTensors } from '../graph';
import { type Checkpoint, checkTensors } from '../weights';
import { type CheckerConfig, invalid, type Layout } from './checker-config';

/** Logits of the head: safe and unsafe, in the file's order. */
export const labelCount = 2;

/** Tensors behind the last layer: the norm and the head. */
export const headTensors = ({ channels: d }: VisionTransformer) =>
  [
    ['norm.weight', [d]],
    ['norm.bias', [d]],
    ['head.weight', [labelCount, d]],
    ['head.bias', [labelCount]],
  ] as const;

/** Parts of our names, and what a layout has there. */
const renames: Readonly<Record<Layout, readonly (readonly [RegExp, string])[]>> = {
  timm: [
    [/^class$/, 'cls_token'],
    [/^positions$/, 'pos_embed'],
    [/^patch\./, 'patch_embed.proj.'],
    [/^layers\./, 'blocks.'],
    [/\.[qkv]\./, '.attn.qkv.'], // rows: queries, keys, values
    [/\.out\./, '.attn.proj.'],
    [/\.fc([12])\./, '.mlp.fc$1.'],
  ],
  transformers: [
    [/^class$/, 'vit.embeddings.cls_token'],
    [/^positions$/, 'vit.embeddings.position_embeddings'],
    [/^patch\./, 'vit.embeddings.patch_embeddings.projection.'],
    [/^norm\./, 'vit.layernorm.'],
    [/^head\./, 'classifier.'],
    [/^layers\./, 'vit.encoder.layer.'],
    [/\.norm1\./, '.layernorm_before.'],
    [/\.norm2\./, '.layernorm_after.'],
    [/\.q\./, '.attention.attention.query.'],
    [/\.k\./, '.attention.attention.key.'],
    [/\.v\./, '.attention.attention.value.'],
    [/\.out\./, '.attention.output.dense.'],
    [/\.fc1\./, '.intermediate.dense.'],
    [/\.fc2\./, '.output.dense.'],
  ],
};

const storedName = (layout: Layout, name: string) =>
  renames[layout].reduce((result, [from, to]) => result.replace(from, to), name);

/** Which third of a tensor of the file one of ours is; null where it is all of it. */
function thirdOf(layout: Layout, name: string): number | null {
  const part = layout === 'timm' ? /\.([qkv])\./.exec(name)?.[1] : undefined;
  return part === undefined ? null : 'qkv'.indexOf(part);
}

/** The shape of each tensor of the file. */
export function storedShapes(
  layout: Layout,
  vit: VisionTransformer,
): Map<string, readonly number[]> {
  const { patchSize: p, channels: d } = vit;
  const shape = (name: string, [rows = 0, ...rest]: readonly number[]) => {
    if (name === 'class') return [1, 1, d];
    if (name === 'positions') return [1, rows, ...rest];
    if (name === 'patch.weight') return [d, 3, p, p];
    return [thirdOf(layout, name) === null ? rows : 3 * rows, ...rest];
  };
  return new Map(
    [...visionTensors(vit), ...headTensors(vit)].map(([name, dims]) => [
      storedName(layout, name),
      shape(name, dims),
    ]),
  );
}

/**
 * The sizes of a checker, from its tensors; all tensors are there in the shapes that follow.
 *
 * @throws KinoraError `TENSOR_MISSING`, `TENSOR_SHAPE`, and `MODEL_CONFIG_INVALID` where configuration and
 * tensors differ
 */
export function readArchitecture(config: CheckerConfig, checkpoint: Checkpoint): VisionTransformer {
  const stored = (name: string) => storedName(config.layout, name);
  const [channels = 0, , patchSize = 0] = checkpoint.shape(stored('patch.weight'));
  const hidden = at(checkpoint.shape(stored('layers.0.fc1.weight')), 0);
  const { size: imageSize } = config.preprocessing;
  let layers = 0;
  while (checkpoint.has(stored(`layers.${layers}.norm1.weight`))) layers += 1;
  const heads = config.heads ?? channels / 64;
  if (!Number.isInteger(heads) || channels % heads !== 0) {
    throw invalid(`Its ${channels} channels do not split into ${heads} heads.`);
  }
  if (patchSize < 1 || imageSize % patchSize !== 0) {
    throw invalid(`Its ${imageSize} pixels do not split into patches of ${patchSize}.`);
  }
  const { epsilon } = config;
  const sizes = { imageSize, patchSize, channels, layers, heads, hidden, epsilon };
  const vit = { ...sizes, patchBias: true, preNorm: false };
  checkTensors(checkpoint, storedShapes(config.layout, vit), 'safety checker');
  return vit;
}

/** Reads a tensor by our name. */
export async function readTensor(
  checkpoint: Pick<Checkpoint, 'read'>,
  layout: Layout,
  name: string,
): Promise<Float32Array> {
  const data = await checkpoint.read(storedName(layout, name));
  const third = thirdOf(layout, name);
  const length = data.length / 3;
  return third === null ? data : data.subarray(third * length, (third + 1) * length);
}
