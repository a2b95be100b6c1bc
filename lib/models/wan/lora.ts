import {
  groupPairs,
  isNamed,
  KinoraError,
  type LoraFile,
  loraBaseOf,
  type ModelManifest,
} from '../../contract';
import type { AdapterScales } from '../../pipeline/model';
import type { Checkpoint, SafetensorsCheckpoint } from '../../weights';
import {
  combineLoras,
  type LoraArchitecture,
  type LoraBranches,
  type ReadLora,
  readLoras,
} from '../layers/lora';
import { scaledAdapters, type WanAdapters } from './adapter';
import { type Expert, expertOfLora, expertsOf, noiseOfLora } from './experts';
import type { VideoConfig } from './model-config';
import { originalTransformerName } from './original-names';
import { transformerTensors } from './wan-tensors';

/** Parts that only blocks that attend to an image have. */
const imageAttention =
  /k_img|v_img|norm_k_img|add_k_proj|add_v_proj|norm_added_k|img_emb|image_embedder/;

/**
 * A transformer, as LoRA files may change it. Where models of its width come with an image branch and without one,
 * what a file has for that branch does not tell the base: the model without one leaves it out.
 */
export function loraArchitectureOf({
  kind,
  transformer,
}: Pick<VideoConfig, 'kind' | 'transformer'>): LoraArchitecture {
  const { image_dim: hasImage, num_layers: layers } = transformer;
  return {
    shapes: transformerTensors(transformer),
    originalName: originalTransformerName,
    baseOf: loraBaseOf,
    ...(kind.varies && !hasImage && { ignores: (key) => imageAttention.test(key) }),
    baseOfKey(key) {
      if (!hasImage && imageAttention.test(key)) {
        return `a base with an image encoder (Wan2.1 I2V): it changes ${key}, which this model does not have`;
      }
      const block = Number(/blocks[._](\d+)[._]/.exec(key)?.[1] ?? -1);
      if (block < layers) return undefined;
      return `another base model: it changes block ${block} (${key}), this model has blocks 0 to ${layers - 1}`;
    },
  };
}

/** The tensors of a LoRA that have no effect on a model. */
export function unusedTensors(
  checkpoint: Pick<Checkpoint, 'names'>,
  { ignores }: LoraArchitecture,
): string[] {
  return ignores ? [...checkpoint.names()].filter(ignores) : [];
}

/**
 * The 14B model that a LoRA was made for: Wan2.2 if the file is for one expert, else by its name, else by parts for an
 * image branch. Others, such as those of text to video, are for both.
 *
 * @param name of the file
 */
export function baseOfLora(checkpoint: SafetensorsCheckpoint, name: string): string {
  const named = /wan[ _.-]?2[ _.-]?([12])/i.exec(name)?.[1];
  if (noiseOfLora({ name }, checkpoint.metadata) || named === '2') return '14B (Wan2.2)';
  const image = [...checkpoint.names()].some((key) => imageAttention.test(key));
  return named === '1' || image ? '14B (Wan2.1)' : '14B (Wan2.1, Wan2.2)';
}

/** LoRAs by the transformer that they are for. */
export type ExpertLoras = ReadonlyMap<Expert, LoraBranches>;

/** The adapters of a model's transformers: LoRAs and its own. */
interface Adapted {
  readonly loras: ExpertLoras;
  /** What tells them from others. */
  readonly ids: readonly string[];
  readonly notes: readonly string[];
}

/**
 * Reads LoRAs and the model's own adapters for its transformers.
 *
 * @throws KinoraError `LORA_INVALID`, `LORA_WRONG_BASE`; `MODEL_FILE_MISSING` where an own adapter is absent
 */
export async function adaptExperts(
  model: { manifest: ModelManifest; config: VideoConfig; adapters: WanAdapters },
  files: readonly LoraFile[],
  scales: AdapterScales,
): Promise<Adapted> {
  const { manifest, config, adapters } = model;
  const own = scaledAdapters(adapters, scales, manifest);
  const architecture = loraArchitectureOf(config);
  const single = config.boundary === null;
  if (single && config.kind.varies) requireNoPair(files, manifest);
  const read = await readLoras(files, architecture);
  const targets = read.loras.map(({ lora, checkpoint }) =>
    single ? null : expertOfLora(lora, checkpoint.metadata),
  );
  if (!single) requireNames(read.loras.filter((_, i) => targets[i] === null));
  const notes: string[] = [];
  const loras = new Map<Expert, LoraBranches>();
  for (const expert of expertsOf(config)) {
    const all = [];
    for (const { adapter, scale } of own) all.push({ lora: await adapter.read(expert), scale });
    notes.push(...all.flatMap(({ lora }) => lora.notes));
    all.push(...read.loras.filter((_, i) => [null, expert].includes(targets[i] ?? null)));
    loras.set(expert, combineLoras(all, architecture));
  }
  notes.push(...read.loras.flatMap((lora) => notesOf(lora, architecture, manifest)));
  const readIds = single ? read.ids : read.ids.map((id, i) => JSON.stringify([id, targets[i]]));
  const ids = [...own.map(({ id }) => id), ...readIds];
  return { loras, ids, notes: [...new Set(notes)] };
}

/**
 * @param loras those that nothing tells the transformer of
 * @throws KinoraError `LORA_INVALID` for two that change the same and have no names, as links to a pair may have none
 */
function requireNames(loras: readonly ReadLora[]): void {
  const nameless = loras.filter(({ lora: { name } }) => !isNamed(name));
  const changes = nameless.map(({ lora }) => [...lora.modules.keys()].sort().join());
  if (new Set(changes).size === changes.length) return;
  const names = nameless.map(({ lora: { name } }) => `"${name}"`).join(' and ');
  const sentence = `Nothing tells which of the LoRAs ${names} is for high and which for low noise.`;
  const remedy = 'Use files, or links to files, with “high” and “low” in their names.';
  throw new KinoraError('LORA_INVALID', sentence, { remedy });
}

/** @throws KinoraError `LORA_WRONG_BASE` for the two files of a pair: together they would act twice */
function requireNoPair(files: readonly LoraFile[], { name }: ModelManifest): void {
  const [pair] = groupPairs(files, (file) => file.name).filter(({ length }) => length === 2);
  if (!pair) return;
  const names = pair.map((file) => `"${file.name}"`).join(' and ');
  const sentence = `The LoRAs ${names} are a pair for the two transformers of Wan2.2-I2V-A14B; ${name} has one.`;
  throw new KinoraError('LORA_WRONG_BASE', sentence);
}

/** Notes for a person on a LoRA, as sentences. */
function notesOf(
  { lora: { name, notes }, checkpoint }: ReadLora,
  architecture: LoraArchitecture,
  { name: model }: ModelManifest,
): readonly string[] {
  const { length } = unusedTensors(checkpoint, architecture);
  if (length === 0) return notes;
  const what = `${length} tensors for an image branch, which ${model} does not have`;
  return [...notes, `The LoRA "${name}" has ${what}: they have no effect.`];
}
