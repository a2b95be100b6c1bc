import { type DeviceTensor, Scope } from '../../gpu';
import type {
  BlockWork,
  ClipConditions,
  ClipDenoiser,
  Denoiser,
  NamedTensors,
} from '../../pipeline/model';
import { latentsToTokens, tokenOrder, tokensToLatents } from '../wan/tokens';
import { type Clip, type TextContext, type Transformer, tokenWidth } from '../wan/transformer';

type Tensor = DeviceTensor<'float32'>;

const prefix = 'latent.';

/** What a given latent frame is called among the tensors of a clip's images. */
export function givenName(frame: number): string {
  return prefix + frame;
}

/** The given latent frames of a clip in ascending order, each [C, 1, h, w]. */
function conditioningFrames(images: NamedTensors): { frame: number; latent: Float32Array }[] {
  return Object.entries(images)
    .map(([name, latent]) => ({ frame: Number(name.slice(prefix.length)), latent }))
    .sort((a, b) => a.frame - b.frame);
}

/**
 * The transformer as a denoiser. Image-to-video is in-painting of latents: at every call the tokens of
 * the given frames are those of clean images at timestep 0, all others have timestep t
 * (`WanImageToVideoPipeline` of diffusers with `expand_timesteps`; `wan/textimage2video.py` of Wan2.2, for the
 * first frame; any other frame in the same way). So the solver moves the other frames' tokens only.
 */
export class Wan22Denoiser implements Denoiser {
  constructor(
    readonly transformer: Transformer,
    /** Upper bound of the tokens that go through a block together. */
    readonly maxChunkTokens: number,
  ) {}

  async prepare(clip: ClipConditions): Promise<ClipDenoiser> {
    const { transformer, maxChunkTokens } = this;
    const { config, backend } = transformer;
    const { size } = clip;
    const width = tokenWidth(config);
    const keyFrames = conditioningFrames(clip.image);
    const one = { ...size, frames: 1 };
    const parts = keyFrames.map(({ latent }) =>
      latentsToTokens(latent, config.in_channels, one, config),
    );
    const conditioning = joined(parts); // [P, width]
    const order = tokenOrder(
      size.frames,
      keyFrames.map(({ frame }) => frame),
    );
    const scope = new Scope(backend);
    // Whatever was made is freed where the device has no memory for the rest.
    const resources: { dispose(): void }[] = [scope];
    try {
      const memory = await transformer.createClip(size, {
        given: order.slice(0, keyFrames.length),
        maxChunkTokens,
        guided: clip.texts.length > 1,
        reusesBlocks: clip.reusesBlocks ?? false,
      });
      resources.push(memory);
      const texts = await transformer.prepareTexts(memory, clip.texts);
      resources.push(...texts);
      const times = {
        conditioning: transformer.createTimeEmbedding(scope),
        noisy: transformer.createTimeEmbedding(scope),
      };
      await transformer.embedTime(memory, 0, times.conditioning);
      const clean = scope.float32([memory.conditioningTokens, width], 'latents', conditioning);
      const tensors = { order, conditioning, clean, times, texts };
      return new Wan22ClipDenoiser(transformer, clip, memory, tensors, resources);
    } catch (error) {
      for (const each of resources) each.dispose();
      throw error;
    }
  }

  stop(): Promise<void> {
    return this.transformer.stop();
  }

  dispose(): void {
    this.transformer.dispose();
  }
}

type TimeEmbedding = ReturnType<Transformer['createTimeEmbedding']>;

interface ClipTensors {
  /** Of the frames in the tokens: the given ones come first. */
  readonly order: readonly number[];
  /** Tokens of the given frames, [P, width]. */
  readonly conditioning: Float32Array;
  readonly times: { readonly conditioning: TimeEmbedding; readonly noisy: TimeEmbedding };
  /** The same on the device. */
  readonly clean: Tensor;
  readonly texts: readonly TextContext[];
}

class Wan22ClipDenoiser implements ClipDenoiser {
  readonly rowWidth: number;

  constructor(
    readonly transformer: Transformer,
    readonly conditions: ClipConditions,
    readonly memory: Clip,
    readonly tensors: ClipTensors,
    readonly resources: readonly { dispose(): void }[],
  ) {
    this.rowWidth = tokenWidth(transformer.config);
  }

  pack(latents: Float32Array): Float32Array {
    const { config } = this.transformer;
    const { order, conditioning } = this.tensors;
    const { size } = this.conditions;
    const tokens = latentsToTokens(latents, config.in_channels, size, config, order);
    return tokens.subarray(conditioning.length);
  }

  unpack(rows: Float32Array): Float32Array {
    const { config } = this.transformer;
    const { order, conditioning } = this.tensors;
    const tokens = joined([conditioning, rows]);
    return tokensToLatents(tokens, config.in_channels, this.conditions.size, config, order);
  }

  async velocity(
    timestep: number,
    sample: Tensor,
    velocities: readonly Tensor[],
    { signal, blocks = [] }: { signal?: AbortSignal; blocks?: readonly BlockWork[] } = {},
  ): Promise<void> {
    const { transformer, memory } = this;
    const { clean, times, texts } = this.tensors;
    const branches = velocities.map((free, i) => {
      const text = texts[i];
      if (!text) throw new TypeError(`There are ${texts.length} texts, not ${velocities.length}.`);
      return { text, velocity: { conditioning: null, free }, blocks: blocks[i] ?? 'compute' };
    });
    // The model sees the clean frame, then the current latents.
    const tokens = { conditioning: clean, free: sample };
    await transformer.embedTime(memory, timestep, times.noisy);
    await transformer.velocity(memory, tokens, times, branches, signal ? { signal } : {});
  }

  dispose(): void {
    for (const each of this.resources) each.dispose();
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
