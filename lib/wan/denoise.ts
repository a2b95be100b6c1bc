import { type Backend, Scope } from '../gpu';
import type { Scheduler } from './scheduler';
import { Solver } from './solver';
import type { LatentSize } from './tokens';
import { createClipMemory, type TextContext, type Transformer } from './transformer';

/** What one clip is denoised from. */
export interface DenoiseRequest {
  readonly size: LatentSize;
  /** Clean tokens of the held frames, [P, C·ph·pw]; the still image's latent. */
  readonly held: Float32Array;
  /** Noise of all tokens, [S, C·ph·pw]; that of the held ones is not used. */
  readonly noise: Float32Array;
  readonly scheduler: Scheduler;
  readonly guidanceScale: number;
  /** Text embeddings [L, textDim]. */
  readonly prompt: Float32Array;
  /** Not used at guidance scale 1. */
  readonly negativePrompt: Float32Array;
  /** Upper bound of the tokens that go through a block together. */
  readonly maxChunkTokens: number;
  readonly signal?: AbortSignal;
  /**
   * Called after each step (from 0) with the predicted clean tokens, held ones included.
   *
   * @returns true to stop here and take this prediction as the result
   */
  readonly afterStep?: (step: number, prediction: Float32Array) => Promise<boolean> | boolean;
}

/**
 * The denoising loop of image-to-video (reference `wan22-ti2v-5b.md` §4.4): at every call the held
 * frames are clean and have timestep 0, all others have timestep t.
 *
 * After the first step nothing is allocated on the device, and per step only the latents come back.
 *
 * @returns clean tokens [S, C·ph·pw], the held ones as they were given
 */
export async function denoise(
  backend: Backend,
  transformer: Transformer,
  request: DenoiseRequest,
): Promise<Float32Array> {
  const { config } = transformer;
  const { size, held, noise, scheduler, guidanceScale, signal } = request;
  const [, ph, pw] = config.patch_size;
  const width = config.in_channels * ph * pw;
  const guided = guidanceScale > 1;
  const perFrame = (size.height / ph) * (size.width / pw);
  const free = noise.subarray(held.length);
  const scope = new Scope(backend);
  const texts: TextContext[] = [];
  // Whatever of this was made is freed at the end, also where the device has no memory for the rest.
  const made: { dispose(): void }[] = [scope];
  try {
    const clip = createClipMemory(backend, config, size, {
      heldFrames: held.length / width / perFrame,
      maxChunkTokens: request.maxChunkTokens,
      guided,
    });
    made.push(clip);
    const solver = new Solver(backend, scheduler, guidanceScale, free, width);
    made.push(solver);
    texts.push(await transformer.prepareText(request.prompt, clip));
    if (guided) texts.push(await transformer.prepareText(request.negativePrompt, clip));
    const times = {
      held: transformer.createTimeEmbedding(scope),
      free: transformer.createTimeEmbedding(scope),
    };
    await transformer.embedTime(0, times.held);
    // What the model sees: the clean frame, then the current latents. Never written to by the solver.
    const input = scope.float32([clip.tokens, width], 'latents');
    const heldTensor = scope.float32([clip.heldTokens, width], 'latents', held);
    backend.copy(heldTensor, 0, input, 0, held.length);
    const velocities = texts.map(() => scope.float32([clip.tokens, width], 'latents'));
    const targets = [solver.conditional, solver.unconditional];
    const result = new Float32Array(noise.length);
    result.set(held);

    for (const [step, timestep] of scheduler.timesteps.entries()) {
      signal?.throwIfAborted();
      await transformer.embedTime(timestep, times.free);
      backend.copy(solver.sample, 0, input, held.length, free.length);
      const branches = texts.map((text, i) => ({
        text,
        velocity: velocities[i] as (typeof velocities)[0],
      }));
      await transformer.velocity(clip, input, times, branches, signal ? { signal } : {});
      for (const [i, velocity] of velocities.entries()) {
        const target = targets[i];
        if (target) backend.copy(velocity, held.length, target, 0, free.length);
      }
      await solver.step(step);
      result.set(await backend.read(solver.prediction), held.length);
      if (await request.afterStep?.(step, result)) break;
    }
    return result;
  } finally {
    for (const each of [...texts, ...made]) each.dispose();
  }
}
