/** The denoising loop in the transformer's own tokens, for tests that start from tokens. */
import type { Backend } from '../../../gpu';
import { denoise, type Prediction } from '../../../pipeline/denoise';
import type { LatentSize } from '../../../pipeline/latents';
import type { Scheduler, SolverState } from '../../../pipeline/schedulers';
import { Wan22Denoiser } from '../denoiser';
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
  readonly resume?: SolverState | null;
  readonly signal?: AbortSignal;
  /** Given all tokens, [S, C·ph·pw]. */
  readonly afterStep?: (step: number, tokens: Float32Array) => Promise<boolean> | boolean;
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
    ...rest
  }: TokenDenoising,
): Promise<Float32Array> {
  const { config } = transformer;
  const { in_channels: channels } = config;
  const { size, guidanceScale } = rest;
  const toTokens = (latents: Float32Array) => latentsToTokens(latents, channels, size, config);
  const observed = afterStep && {
    afterStep: (step: number, prediction: Prediction) =>
      afterStep(step, toTokens(prediction.latents())),
  };
  const latents = await denoise(backend, new Wan22Denoiser(transformer, maxChunkTokens), {
    ...rest,
    image: tokensToLatents(conditioning, channels, { ...size, frames: 1 }, config),
    texts: guidanceScale > 1 ? [prompt, negativePrompt] : [prompt],
    noise: () => tokensToLatents(noise, channels, size, config),
    ...observed,
  });
  return toTokens(latents);
}
