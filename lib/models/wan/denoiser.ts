import { type DeviceTensor, Scope } from '../../gpu';
import type { BlockWork, ClipConditions, ClipDenoiser, Denoiser } from '../../pipeline/model';
import { conditionName, featuresName, givenFrames } from './condition';
import { type Expert, expertAt } from './experts';
import { latentsToTokens, tokenOrder, tokensToLatents } from './tokens';
import { type Clip, type TextContext, type Transformer, tokenWidth } from './transformer';

type Tensor = DeviceTensor<'float32'>;
type TimeEmbedding = ReturnType<Transformer['createTimeEmbedding']>;

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
export class WanDenoiser implements Denoiser {
  #loaded: Loaded | null;
  #stopped = false;

  private constructor(
    /** As {@link expertAt} takes it. */
    readonly boundary: number | null,
    /** Upper bound of the tokens that go through a block together. */
    readonly maxChunkTokens: number,
    readonly load: LoadExpert,
    first: Loaded,
  ) {
    this.#loaded = first;
  }

  /** @param timestep at which the first step computes */
  static async create(
    boundary: number | null,
    maxChunkTokens: number,
    load: LoadExpert,
    timestep: number,
  ): Promise<WanDenoiser> {
    const expert = expertAt({ boundary }, timestep);
    const first = { expert, transformer: await load(expert) };
    return new WanDenoiser(boundary, maxChunkTokens, load, first);
  }

  /** The transformer that computes now. @throws TypeError after one could not be loaded */
  get loaded(): Loaded {
    if (this.#loaded) return this.#loaded;
    throw new TypeError('no transformer is loaded');
  }

  /** Frees the present transformer and loads another one. */
  async change(expert: Expert): Promise<void> {
    const { transformer: before } = this.loaded;
    const { backend } = before;
    this.#loaded = null;
    await before.stop();
    await backend.settle();
    before.dispose();
    await backend.trim();
    const transformer = await this.load(expert);
    this.#loaded = { expert, transformer };
    if (this.#stopped) await transformer.stop();
  }

  async prepare(conditions: ClipConditions): Promise<ClipDenoiser> {
    const clip = new WanClip(this, conditions);
    try {
      await clip.open();
      return clip;
    } catch (error) {
      // If the device has no memory for the rest, frees what it has made.
      clip.dispose();
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

/** Tensors of a clip on the device with one of the transformers. */
interface Opened {
  readonly transformer: Transformer;
  readonly memory: Clip;
  readonly texts: readonly TextContext[];
  readonly times: { readonly conditioning: TimeEmbedding; readonly noisy: TimeEmbedding };
  /** Tokens of the given frames, [P, width]; null where none is given. */
  readonly clean: Tensor | null;
}

/**
 * A clip with its pictures. Given frames are in-painted: at every call their tokens are those of clean images at
 * timestep 0, all others have timestep t (`expand_timesteps` of diffusers' pipeline; `wan/textimage2video.py` of
 * Wan2.2, for the first frame; any other frame in the same way), so that the solver moves the other frames' tokens
 * only. Where channels show the pictures, no frame is given, and all tokens have timestep t.
 */
class WanClip implements ClipDenoiser {
  readonly rowWidth: number;
  /** Frames in the order of their tokens: the given ones come first. */
  readonly #order: readonly number[];
  /** Latent frames that are given, and their tokens, [P, width]. */
  readonly #given: readonly number[];
  readonly #conditioning: Float32Array;
  readonly #config: Transformer['config'];
  #resources: { dispose(): void }[] = [];
  #opened: Opened | null = null;
  /** Guidance branches whose blocks' sum is kept. */
  readonly #kept = new Set<number>();

  constructor(
    readonly denoiser: WanDenoiser,
    readonly conditions: ClipConditions,
  ) {
    const { size, image } = conditions;
    const { config } = denoiser.loaded.transformer;
    const frames = givenFrames(image);
    const one = { ...size, frames: 1 };
    this.#config = config;
    this.#given = frames.map(({ frame }) => frame);
    this.#order = tokenOrder(size.frames, this.#given);
    this.#conditioning = joined(
      frames.map(({ latent }) => latentsToTokens(latent, config.out_channels, one, config)),
    );
    this.rowWidth = tokenWidth(config);
  }

  /** Takes the clip's memory beside the transformer that is loaded. */
  async open(): Promise<Opened> {
    const { denoiser } = this;
    const { transformer } = denoiser.loaded;
    const { config, backend } = transformer;
    const { size, image, texts, reusesBlocks = false } = this.conditions;
    const { [conditionName]: condition, [featuresName]: features } = image;
    const scope = new Scope(backend);
    this.#resources = [scope];
    const memory = await transformer.createClip(size, {
      given: this.#given,
      maxChunkTokens: denoiser.maxChunkTokens,
      guided: texts.length > 1,
      reusesBlocks,
      imageRows: config.image_dim && features ? features.length / config.image_dim : undefined,
    });
    this.#resources.push(memory);
    const channels = config.in_channels - config.out_channels;
    if (channels > 0) {
      if (!condition) throw new TypeError('the clip has no condition');
      memory.setCondition(latentsToTokens(condition, channels, size, config));
    }
    if (features) await transformer.embedImage(memory, features);
    const contexts = await transformer.prepareTexts(memory, texts);
    this.#resources.push(...contexts);
    const noisy = transformer.createTimeEmbedding(scope);
    let times = { conditioning: noisy, noisy };
    let clean: Tensor | null = null;
    if (this.#given.length > 0) {
      times = { ...times, conditioning: transformer.createTimeEmbedding(scope) };
      await transformer.embedTime(memory, 0, times.conditioning);
      const rows = [memory.conditioningTokens, this.rowWidth];
      clean = scope.float32(rows, 'latents', this.#conditioning);
    }
    this.#opened = { transformer, memory, texts: contexts, times, clean };
    return this.#opened;
  }

  /** What computes at a timestep; there the transformers change. */
  async #at(timestep: number): Promise<Opened> {
    const { loaded } = this.denoiser;
    const expert = expertAt(this.denoiser, timestep);
    if (this.#opened && loaded.expert === expert) return this.#opened;
    this.dispose();
    if (loaded.expert !== expert) await this.denoiser.change(expert);
    return this.open();
  }

  pack(latents: Float32Array): Float32Array {
    const config = this.#config;
    const { size } = this.conditions;
    const tokens = latentsToTokens(latents, config.out_channels, size, config, this.#order);
    return tokens.subarray(this.#conditioning.length);
  }

  unpack(rows: Float32Array): Float32Array {
    const config = this.#config;
    const tokens = joined([this.#conditioning, rows]);
    return tokensToLatents(tokens, config.out_channels, this.conditions.size, config, this.#order);
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
    const { transformer, memory, texts, times, clean } = await this.#at(timestep);
    const branches = velocities.map((free, i) => {
      const text = texts[i];
      if (!text) throw new TypeError(`There are ${texts.length} texts, not ${velocities.length}.`);
      return { text, velocity: { conditioning: null, free }, blocks: this.#work(i, blocks[i]) };
    });
    // The model sees the clean frames, then the current latents.
    const tokens = { conditioning: clean, free: sample };
    await transformer.embedTime(memory, timestep, times.noisy);
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

/** Rows one after another. */
function joined(parts: readonly Float32Array[]): Float32Array {
  const rows = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    rows.set(part, at);
    at += part.length;
  }
  return rows;
}
