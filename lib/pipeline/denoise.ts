import { KinoraError } from '../contract';
import { type Backend, Scope } from '../gpu';
import type { LatentSize } from '../models/wan22/tokens';
import { createClipMemory, type TextContext, type Transformer } from '../models/wan22/transformer';
import type { Scheduler } from './schedulers/scheduler';
import { Solver, type SolverState } from './schedulers/solver';

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
  /** Where an interrupted run goes on; from the first step when absent. */
  readonly resume?: SolverState | null;
  readonly signal?: AbortSignal;
  /**
   * Called after each step (from 0) with the predicted clean tokens, held ones included.
   *
   * @returns true to stop here and take this prediction as the result
   */
  readonly afterStep?: (step: number, prediction: Float32Array) => Promise<boolean> | boolean;
}

/** The device had too little memory in the middle of the loop. Everything of it is freed. */
export class DenoiseInterrupted extends Error {
  override readonly name = 'DenoiseInterrupted';

  constructor(
    /** `OUT_OF_MEMORY` */
    override readonly cause: KinoraError,
    /** Where to go on; null where no step was finished. */
    readonly state: SolverState | null,
    /** What was live when it happened. */
    readonly heldBytes: number,
  ) {
    super(cause.message);
  }
}

/**
 * The denoising loop of image-to-video (reference `wan22-ti2v-5b.md` §4.4): at every call the held
 * frames are clean and have timestep 0, all others have timestep t.
 *
 * After the first step nothing is allocated on the device, and per step only the latents come back.
 *
 * @returns clean tokens [S, C·ph·pw], the held ones as they were given
 * @throws DenoiseInterrupted where the device's memory does not suffice; a new call goes on
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
  const resume = request.resume ?? null;
  let solver: Solver | undefined;
  try {
    const clip = createClipMemory(backend, config, size, {
      heldFrames: held.length / width / perFrame,
      maxChunkTokens: request.maxChunkTokens,
      guided,
    });
    made.push(clip);
    solver = new Solver(backend, scheduler, guidanceScale, resume ?? free, width);
    made.push(solver);
    const prompts = guided ? [request.prompt, request.negativePrompt] : [request.prompt];
    texts.push(...(await transformer.prepareTexts(prompts, clip)));
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
    if (resume) result.set(resume.previous, held.length);

    for (const [step, timestep] of scheduler.timesteps.entries()) {
      if (resume && step < resume.step) continue;
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
      solver.commit(step + 1);
      if (await request.afterStep?.(step, result)) break;
    }
    return result;
  } catch (error) {
    if (!(error instanceof KinoraError) || error.code !== 'OUT_OF_MEMORY') throw error;
    const { liveBytes } = backend.counters();
    // No read ahead may make buffers any more, lest one of them fails after the recovery.
    await transformer.stop();
    for (const each of [...texts, ...made]) if (each !== solver) each.dispose();
    throw new DenoiseInterrupted(error, (await rescue(backend, solver)) ?? resume, liveBytes);
  } finally {
    for (const each of [...texts, ...made]) each.dispose();
  }
}

/**
 * Brings the solver's state to the CPU after the memory ran out; null where it has none that is
 * sure.
 */
async function rescue(backend: Backend, solver: Solver | undefined): Promise<SolverState | null> {
  for (let attempt = 0; attempt < 2; attempt++) {
    await backend.recover();
    try {
      return (await solver?.save()) ?? null;
    } catch (error) {
      // What failed before may be reported that late; it says nothing about what was read.
      if (!(error instanceof KinoraError) || error.code !== 'OUT_OF_MEMORY') throw error;
    }
  }
  await backend.recover();
  return null;
}
