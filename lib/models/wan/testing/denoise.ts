/** The denoising loop in the transformer's own tokens, for tests that start from tokens. */
import type { Backend } from '../../../gpu';
import { type DenoiseState, denoise, type Prediction } from '../../../pipeline/denoise';
import type { LatentSize } from '../../../pipeline/latents';
import { gaussianNoise } from '../../../pipeline/noise';
import { createScheduler, type Scheduler } from '../../../pipeline/schedulers';
import type { StepCache } from '../../../pipeline/step-cache';
import { givenName } from '../condition';
import type { TransformerConfig } from '../config-schemas';
import { WanDenoiser } from '../denoiser';
import { latentsToTokens, tokensToLatents } from '../tokens';
import type { Transformer } from '../transformer';

export interface TokenDenoising {
  readonly size: LatentSize;
  /** Clean tokens of the conditioning frame, [P, C·ph·pw]. */
  readonly conditioning: Float32Array;
  /** Noise of all tokens, [S, C·ph·pw]. */
  readonly noise: Float32Array;
  readonly scheduler: Scheduler;
  readonly guidanceScale: number;
  readonly prompt: Float32Array;
  /** Not used at guidance scale 1. */
  readonly negativePrompt: Float32Array;
  readonly maxChunkTokens: number;
  readonly guidedSteps?: number;
  readonly cache?: StepCache;
  readonly resume?: DenoiseState | null;
  readonly signal?: AbortSignal;
  /** Whether the state after each step is saved. */
  readonly saves?: boolean;
  /** Given all tokens, [S, C·ph·pw]. */
  readonly afterStep?: (step: number, tokens: Float32Array) => Promise<boolean> | boolean;
}

/** Tokens of a frame and of the clip of {@link tokenRequest}, and values of a token. */
export const [perFrame, tokens, width] = [2, 6, 192] as const;

/** Noise of one stream, the same each time. */
export const values = (stream: number, count: number) => gaussianNoise({ seed: 1, stream, count });

/** A clip of the tiny model, of 3×2×4 latent positions, from noise, with prompts of 5 and 3 tokens. */
export function tokenRequest(
  config: TransformerConfig,
  steps: number,
  guidanceScale: number,
  more: Partial<TokenDenoising> = {},
): TokenDenoising {
  return {
    size: { frames: 3, height: 2, width: 4 },
    conditioning: values(0, perFrame * width),
    noise: values(1, tokens * width),
    scheduler: createScheduler({ kind: 'unipc', steps, flowShift: 5 }),
    guidanceScale,
    prompt: values(2, 5 * config.text_dim),
    negativePrompt: values(3, 3 * config.text_dim),
    maxChunkTokens: perFrame,
    ...more,
  };
}

/** @returns clean tokens [S, C·ph·pw] */
export async function denoiseTokens(
  backend: Backend,
  transformer: Transformer,
  {
    conditioning,
    noise,
    prompt,
    negativePrompt,
    maxChunkTokens,
    afterStep,
    saves,
    ...rest
  }: TokenDenoising,
): Promise<Float32Array> {
  const { config } = transformer;
  const { in_channels: channels } = config;
  const { size, guidanceScale } = rest;
  const toTokens = (latents: Float32Array) => latentsToTokens(latents, channels, size, config);
  const observed = {
    async afterStep(step: number, prediction: Prediction) {
      if (saves) await prediction.save();
      return (await afterStep?.(step, toTokens(prediction.latents()))) ?? false;
    },
  };
  const denoiser = await WanDenoiser.create(null, maxChunkTokens, async () => transformer, 0);
  const latents = await denoise(backend, denoiser, {
    ...rest,
    image: {
      [givenName(0)]: tokensToLatents(conditioning, channels, { ...size, frames: 1 }, config),
    },
    texts: guidanceScale > 1 ? [prompt, negativePrompt] : [prompt],
    noise: () => tokensToLatents(noise, channels, size, config),
    ...observed,
  });
  return toTokens(latents);
}
