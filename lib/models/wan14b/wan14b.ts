import {
  groupPairs,
  isNamed,
  KinoraError,
  type LoraFile,
  type ModelManifest,
} from '../../contract';
import type { Backend } from '../../gpu';
import type { KeyFrame } from '../../pipeline/key-frames';
import type { MemoryPlan } from '../../pipeline/memory/plan';
import type {
  AdapterScales,
  Denoiser,
  Loading,
  ModelFamily,
  NamedTensors,
  VideoModel,
} from '../../pipeline/model';
import type { Checkpoint } from '../../weights';
import {
  combineLoras,
  type LoraArchitecture,
  type LoraBranches,
  type ReadLora,
  readLoras,
} from '../layers/lora';
import { scaledAdapters } from '../wan/adapter';
import { countWan } from '../wan/counts';
import { WanModel } from '../wan/model';
import type { FamilyPlanOptions } from '../wan/plan';
import { Transformer } from '../wan/transformer';
import { encodeCondition } from './condition';
import { readModelConfig, type VideoConfig } from './config';
import { conditionName, ExpertsDenoiser, featuresName } from './denoiser';
import { type Expert, expertOfLora, expertsOf } from './experts';
import { featureRows } from './image-encoder/config';
import { countImageEncoder, encodeImage, encoderPixels } from './image-encoder/image-encoder';
import { wan14bInstallation } from './install';
import { loraArchitecture, unusedTensors } from './lora';
import { openParts, openStoredParts, type Wan14bParts } from './parts';
import { componentRecipe } from './recipes';

/** LoRAs by the transformer that they are for. */
type ExpertLoras = ReadonlyMap<Expert, LoraBranches>;

/** Wan2.1-I2V-14B and Wan2.2-I2V-A14B as the pipeline sees them: see the README of this folder. */
export class Wan14b extends WanModel<Wan14bParts> implements VideoModel {
  constructor(
    parts: Wan14bParts,
    readonly loras: ExpertLoras = new Map(),
    adapterIds: readonly string[] = [],
    readonly notes: readonly string[] = [],
  ) {
    super(parts, adapterIds);
  }

  protected get transformer(): Checkpoint {
    return this.#weightsOf('transformer');
  }

  /** Of the transformer whose LoRAs have the highest ranks: only one is on the device at a time. */
  protected get lora(): LoraBranches | null {
    const ranks = ({ branches }: LoraBranches) =>
      [...branches.values()].reduce((sum, { rank }) => sum + rank, 0);
    const all = [...this.loras.values()].sort((a, b) => ranks(b) - ranks(a));
    return all[0] ?? null;
  }

  #weightsOf(expert: Expert): Checkpoint {
    const checkpoint = this.parts.experts.get(expert);
    if (!checkpoint) throw new TypeError(`there is no ${expert}`);
    return checkpoint;
  }

  protected override get planOptions() {
    return planOptions(this.parts.config);
  }

  async withLoras(files: readonly LoraFile[], scales: AdapterScales = {}): Promise<Wan14b> {
    const { adapters, manifest, config } = this.parts;
    const own = scaledAdapters(adapters, scales, manifest);
    if (files.length + own.length === 0) return this;
    const architecture = loraArchitecture(config);
    if (config.boundary === null) requireNoPair(files, manifest);
    const read = await readLoras(files, architecture);
    const notes = read.loras.flatMap((lora) => notesOf(lora, architecture, manifest));
    const targets = read.loras.map(({ lora, checkpoint }) =>
      config.boundary === null ? null : expertOfLora(lora, checkpoint.metadata),
    );
    if (config.boundary !== null) requireNames(read.loras.filter((_, i) => targets[i] === null));
    const loras = new Map<Expert, LoraBranches>();
    for (const expert of expertsOf(config)) {
      const all = [];
      for (const { adapter, scale } of own) all.push({ lora: await adapter.read(expert), scale });
      all.push(...read.loras.filter((_, i) => [null, expert].includes(targets[i] ?? null)));
      loras.set(expert, combineLoras(all, architecture));
    }
    const readIds = read.ids.map((id, i) => JSON.stringify([id, targets[i]]));
    const ids = [...own.map(({ id }) => id), ...readIds];
    return new Wan14b(this.parts, loras, ids, notes);
  }

  /** `condition`: [4 + z, F, h, w]; `features` of the first picture with an image encoder. */
  async encodeImages(
    backend: Backend,
    images: readonly KeyFrame[],
    frames: number,
    signal: AbortSignal,
  ): Promise<NamedTensors> {
    const { config, vae, imageEncoder } = this.parts;
    const condition = await encodeCondition(backend, config, vae, images, frames, { signal });
    const [first] = images;
    const { image_encoder: encoder } = config;
    if (!encoder || !imageEncoder || !first) return { [conditionName]: condition };
    const pixels = encoderPixels(first.image, encoder);
    return {
      [conditionName]: condition,
      [featuresName]: await encodeImage(backend, imageEncoder, encoder, pixels, signal),
    };
  }

  async loadDenoiser(
    backend: Backend,
    plan: MemoryPlan,
    loading: Loading,
    timestep: number,
  ): Promise<Denoiser> {
    const { config, precision } = this.parts;
    let first = true;
    const load = (expert: Expert) => {
      const lora = this.loras.get(expert);
      const { signal, onBytes } = loading;
      const reading = { signal, precision, ...(first && { onBytes }), ...(lora && { lora }) };
      first = false;
      const weights = this.#weightsOf(expert);
      return Transformer.load(backend, weights, config.transformer, reading, plan.residency);
    };
    return ExpertsDenoiser.create(backend, config, plan.chunkTokens, load, timestep);
  }
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

/** What a person should know of a LoRA here, as sentences. */
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

/** What a plan has to know of the images: no frame of the clip is given, and the blocks may attend to features. */
function planOptions({ image_encoder: encoder }: VideoConfig): FamilyPlanOptions {
  if (!encoder) return { given: [] };
  return {
    given: [],
    imageRows: featureRows(encoder),
    countImageEncoder: (kernels, compute) => countImageEncoder(encoder, kernels, compute),
  };
}

/** The family of image-to-video models of 14 billion parameters. */
export const wan14bFamily: ModelFamily = {
  installation: wan14bInstallation,
  open: async (manifest, folder) => new Wan14b(await openParts(manifest, folder)),
  openInstalled: async (manifest, folder) => new Wan14b(await openStoredParts(manifest, folder)),
  async count(precision, configuration) {
    const config = await readModelConfig(configuration);
    const recipes = {
      text: componentRecipe('text_encoder', config, precision),
      denoise: componentRecipe('transformer', config, precision),
    };
    return countWan(config, precision, recipes, planOptions(config));
  },
};
