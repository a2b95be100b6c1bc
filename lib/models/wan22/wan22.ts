import type { LoraFile } from '../../contract';
import type { Backend } from '../../gpu';
import { type KeyFrame, latentOf } from '../../pipeline/key-frames';
import type { Frame } from '../../pipeline/latents';
import type { MemoryPlan } from '../../pipeline/memory/plan';
import type {
  AdapterScales,
  Denoiser,
  Loading,
  ModelFamily,
  NamedTensors,
  VideoModel,
} from '../../pipeline/model';
import { combineLoras, type LoraBranches, readLoras } from '../layers/lora';
import { scaledAdapters } from '../wan/adapter';
import { countWan } from '../wan/counts';
import { loraArchitectureOf } from '../wan/lora';
import { WanModel } from '../wan/model';
import { Transformer } from '../wan/transformer';
import { encodeFirstFrame } from '../wan/vae';
import { readModelConfig } from './config';
import { givenName, Wan22Denoiser } from './denoiser';
import { wan22Installation } from './install';
import { openParts, openStoredParts, type Wan22Parts } from './parts';
import { componentRecipe } from './recipes';

/** Wan2.2-TI2V as the pipeline sees it: see the README of this folder. */
export class Wan22 extends WanModel<Wan22Parts> implements VideoModel {
  constructor(
    parts: Wan22Parts,
    readonly lora: LoraBranches | null = null,
    adapterIds: readonly string[] = [],
    readonly notes: readonly string[] = [],
  ) {
    super(parts, adapterIds);
  }

  protected get transformer() {
    return this.parts.transformer;
  }

  async withLoras(files: readonly LoraFile[], scales: AdapterScales = {}): Promise<Wan22> {
    const { adapters, manifest, config } = this.parts;
    const own = scaledAdapters(adapters, scales, manifest);
    if (files.length + own.length === 0) return this;
    const architecture = loraArchitectureOf(config.transformer);
    const loras = [];
    for (const { adapter, scale } of own) loras.push({ lora: await adapter.read(), scale });
    const read = await readLoras(files, architecture);
    const all = [...loras, ...read.loras];
    const lora = combineLoras(all, architecture);
    const ids = [...own.map(({ id }) => id), ...read.ids];
    const notes = all.flatMap((one) => one.lora.notes);
    return new Wan22(this.parts, lora, ids, notes);
  }

  /** Each picture alone, as a first frame: `latent.N` is latent frame N, [C, 1, h, w]; held frames as they are. */
  async encodeImages(
    backend: Backend,
    images: readonly KeyFrame[],
    _frames: number,
    signal: AbortSignal,
    held: readonly Float32Array[] = [],
  ): Promise<NamedTensors> {
    const { config, vae } = this.parts;
    const latents = new Map<Frame, Float32Array>();
    const named = Object.fromEntries(held.map((latent, f) => [givenName(f), latent]));
    for (const { frame, image } of images) {
      const latent =
        latents.get(image) ?? (await encodeFirstFrame(backend, config.vae, vae, image, { signal }));
      latents.set(image, latent);
      named[givenName(latentOf(frame, this.latents.strides.time))] = latent;
    }
    return named;
  }

  async loadDenoiser(backend: Backend, plan: MemoryPlan, loading: Loading): Promise<Denoiser> {
    const { transformer, config, precision } = this.parts;
    const reading = { ...loading, precision, ...(this.lora ? { lora: this.lora } : {}) };
    return new Wan22Denoiser(
      await Transformer.load(backend, transformer, config.transformer, reading, plan.residency),
      plan.chunkTokens,
    );
  }
}

/** The family of Wan2.2-TI2V models. */
export const wan22Family: ModelFamily = {
  installation: wan22Installation,
  open: async (manifest, folder) => new Wan22(await openParts(manifest, folder)),
  openInstalled: async (manifest, folder) => new Wan22(await openStoredParts(manifest, folder)),
  async count(precision, configuration) {
    const config = await readModelConfig(configuration);
    const recipes = {
      text: componentRecipe('text_encoder', config, precision),
      denoise: componentRecipe('transformer', config, precision),
    };
    return countWan(config, precision, recipes);
  },
};
