import { type Backend, type DeviceTensor, Scope } from '../../gpu';
import type { BlockWork, ClipConditions, ClipDenoiser, Denoiser } from '../../pipeline/model';
import { latentsToTokens, tokensToLatents } from '../wan/tokens';
import { type Clip, type TextContext, type Transformer, tokenWidth } from '../wan/transformer';
import { maskChannels, type VideoConfig } from './config';
import { type Expert, expertAt } from './experts';

type Tensor = DeviceTensor<'float32'>;
type TimeEmbedding = ReturnType<Transformer['createTimeEmbedding']>;

/** Names of what a clip is conditioned by. */
export const conditionName = 'condition';
export const featuresName = 'features';

/** Loads a transformer as far as the memory plan keeps it on the device. */
export type LoadExpert = (expert: Expert) => Promise<Transformer>;

/** A transformer on the device. */
interface Loaded {
  readonly expert: Expert;
  readonly transformer: Transformer;
}

/**
 * One or two transformers as a denoiser: the first computes at high timesteps, the second one below the boundary
 * (`WanImageToVideoPipeline` of diffusers; `wan/image2video.py` of Wan2.2). Only one is on the device at a time.
 */
export class ExpertsDenoiser implements Denoiser {
  #loaded: Loaded | null;
  #stopped = false;

  constructor(
    readonly backend: Backend,
    readonly config: VideoConfig,
    /** Upper bound of the tokens that go through a block together. */
    readonly maxChunkTokens: number,
    readonly load: LoadExpert,
    first: Loaded,
  ) {
    this.#loaded = first;
  }

  /** @param timestep at which the first step computes */
  static async create(
    backend: Backend,
    config: VideoConfig,
    maxChunkTokens: number,
    load: LoadExpert,
    timestep: number,
  ): Promise<ExpertsDenoiser> {
    const expert = expertAt(config, timestep);
    const first = { expert, transformer: await load(expert) };
    return new ExpertsDenoiser(backend, config, maxChunkTokens, load, first);
  }

  /** The transformer that computes now; null after one could not be loaded. */
  get loaded(): Loaded | null {
    return this.#loaded;
  }

  /** Frees the present transformer and loads another one. */
  async change(expert: Expert): Promise<Transformer> {
    await this.#free();
    await this.backend.trim();
    const transformer = await this.load(expert);
    this.#loaded = { expert, transformer };
    if (this.#stopped) await transformer.stop();
    return transformer;
  }

  async #free(): Promise<void> {
    const before = this.#loaded;
    this.#loaded = null;
    await before?.transformer.stop();
    await this.backend.settle();
    before?.transformer.dispose();
  }

  async prepare(clip: ClipConditions): Promise<ClipDenoiser> {
    const denoiser = new ExpertsClip(this, clip);
    try {
      await denoiser.open();
      return denoiser;
    } catch (error) {
      denoiser.dispose();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loaded?.transformer.stop();
  }

  dispose(): void {
    this.#loaded?.transformer.dispose();
    this.#loaded = null;
  }
}

/** What a clip has on the device with one of the transformers. */
interface Opened {
  readonly transformer: Transformer;
  readonly memory: Clip;
  readonly texts: readonly TextContext[];
  readonly time: TimeEmbedding;
}

class ExpertsClip implements ClipDenoiser {
  readonly rowWidth: number;
  #resources: { dispose(): void }[] = [];
  #opened: Opened | null = null;
  /** Guidance branches whose blocks' sum is kept. */
  readonly #kept = new Set<number>();

  constructor(
    readonly denoiser: ExpertsDenoiser,
    readonly conditions: ClipConditions,
  ) {
    this.rowWidth = tokenWidth(denoiser.config.transformer);
  }

  /** Takes the clip's memory beside the transformer that is loaded. */
  async open(): Promise<Opened> {
    const { loaded, backend, maxChunkTokens, config } = this.denoiser;
    if (!loaded) throw new TypeError('no transformer is loaded');
    const { transformer } = loaded;
    const { size, image, texts, reusesBlocks = false } = this.conditions;
    const { [conditionName]: condition, [featuresName]: features } = image;
    if (!condition) throw new TypeError('the clip has no condition');
    const scope = new Scope(backend);
    this.#resources = [scope];
    const imageRows =
      config.image_encoder && features
        ? features.length / config.image_encoder.hidden_size
        : undefined;
    const guided = texts.length > 1;
    const memory = await transformer.createClip(size, {
      given: [],
      maxChunkTokens,
      guided,
      reusesBlocks,
      imageRows,
    });
    this.#resources.push(memory);
    const channels = maskChannels + config.vae.z_dim;
    memory.setCondition(latentsToTokens(condition, channels, size, config.transformer));
    if (features) await transformer.embedImage(memory, features);
    const contexts = await transformer.prepareTexts(memory, texts);
    this.#resources.push(...contexts);
    const time = transformer.createTimeEmbedding(scope);
    this.#opened = { transformer, memory, texts: contexts, time };
    return this.#opened;
  }

  /** What computes at a timestep; there the transformers change. */
  async #at(timestep: number): Promise<Opened> {
    const { loaded, config } = this.denoiser;
    const expert = expertAt(config, timestep);
    if (this.#opened && loaded?.expert === expert) return this.#opened;
    this.dispose();
    if (loaded?.expert !== expert) await this.denoiser.change(expert);
    return this.open();
  }

  pack(latents: Float32Array): Float32Array {
    const { transformer } = this.denoiser.config;
    return latentsToTokens(latents, transformer.out_channels, this.conditions.size, transformer);
  }

  unpack(rows: Float32Array): Float32Array {
    const { transformer } = this.denoiser.config;
    return tokensToLatents(rows, transformer.out_channels, this.conditions.size, transformer);
  }

  async velocity(
    timestep: number,
    sample: Tensor,
    velocities: readonly Tensor[],
    {
      signal,
      blocks = [],
    }: { signal?: AbortSignal | undefined; blocks?: readonly BlockWork[] } = {},
  ): Promise<void> {
    const { transformer, memory, texts, time } = await this.#at(timestep);
    await transformer.embedTime(memory, timestep, time);
    const branches = velocities.map((free, i) => {
      const text = texts[i];
      if (!text) throw new TypeError(`There are ${texts.length} texts, not ${velocities.length}.`);
      return { text, velocity: { conditioning: null, free }, blocks: this.#work(i, blocks[i]) };
    });
    const tokens = { conditioning: null, free: sample };
    const times = { noisy: time, conditioning: time };
    await transformer.velocity(memory, tokens, times, branches, signal ? { signal } : {});
  }

  /** A cache does not reuse results of another transformer's blocks. */
  #work(branch: number, requested: BlockWork = 'compute'): BlockWork {
    const work = requested === 'reuse' && !this.#kept.has(branch) ? 'keep' : requested;
    if (work === 'keep') this.#kept.add(branch);
    return work;
  }

  dispose(): void {
    this.#opened = null;
    this.#kept.clear();
    for (const each of this.#resources) each.dispose();
    this.#resources = [];
  }
}
