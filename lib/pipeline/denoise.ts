import { KinoraError } from '../contract';
import type { Backend, DeviceTensor } from '../gpu';
import type { ClipConditions, ClipDenoiser, Denoiser } from './model';
import { type Scheduler, Solver, type SolverState } from './schedulers';
import { cachedVelocity, type StepCache } from './step-cache';

/** Inputs of the denoising of one clip. */
export interface DenoiseRequest extends ClipConditions {
  readonly scheduler: Scheduler;
  /** Over 1 with two texts, 1 with one. */
  readonly guidanceScale: number;
  /** Where it depends on the timestep; then {@link guidanceScale} is the largest. */
  readonly guidanceAt?: ((timestep: number) => number) | undefined;
  /** Steps from the first one that run with guidance; all when absent. */
  readonly guidedSteps?: number | undefined;
  /** None when absent. */
  readonly cache?: StepCache | undefined;
  /**
   * Standard normal noise of the whole clip, [C, F, h, w]: draw 0 is what the clip starts from, draw
   * i + 1 the fresh noise of step i (from 0) in a stochastic sampler.
   */
  readonly noise: (draw: number) => Float32Array;
  /** The step at which an interrupted run continues; from the first step when absent. */
  readonly resume?: DenoiseState | null;
  readonly signal?: AbortSignal;
  /**
   * Called after each step (from 0) with the prediction of the clean latents.
   *
   * @param prediction the denoised rows, and a function that makes latents [C, F, h, w] of them
   * @returns true to stop here and take this prediction as the result
   */
  readonly afterStep?: (step: number, prediction: Prediction) => Promise<boolean> | boolean;
}

/** The state of the loop between two steps: enough to go on from there. */
export interface DenoiseState extends Omit<SolverState, 'previous'> {
  /** The prediction of the last step: clean latents [C, F, h, w], with the frames that the image fixes. */
  readonly prediction: Float32Array;
}

/** The clean latents as a step predicts them. */
export interface Prediction {
  readonly rows: Float32Array;
  /** Latents [C, F, h, w], with the frames that the image fixes. */
  latents(): Float32Array;
  /** Reads the state after this step; null where a later run could not go on from it bit for bit. */
  save(): Promise<DenoiseState | null>;
}

/** The device had too little memory in the middle of the loop. Everything of it is freed. */
export class DenoiseInterrupted extends Error {
  override readonly name = 'DenoiseInterrupted';

  constructor(
    /** `OUT_OF_MEMORY` */
    override readonly cause: KinoraError,
    /** Where a new call continues; null where no step was finished. */
    readonly state: DenoiseState | null,
    /** Bytes that were live when it happened. */
    readonly liveBytes: number,
  ) {
    super(cause.message);
  }
}

/**
 * The denoising loop: guidance and a sampler over a model's velocity. The solver changes only the rows
 * that the model's conditioning leaves free.
 *
 * After the first step nothing is allocated on the device, and each step reads back only the latents.
 *
 * @returns clean latents [C, F, h, w]
 * @throws DenoiseInterrupted where the device's memory does not suffice; a new call continues from its state
 */
export async function denoise(
  backend: Backend,
  denoiser: Denoiser,
  request: DenoiseRequest,
): Promise<Float32Array> {
  const { scheduler, guidanceScale, noise, signal, cache = { kind: 'none' } } = request;
  const { guidedSteps = scheduler.steps } = request;
  const resume = request.resume ?? null;
  let clip: ClipDenoiser | undefined;
  let solver: Solver | undefined;
  try {
    clip = await denoiser.prepare({ ...request, reusesBlocks: cache.kind === 'magcache' });
    const { rowWidth } = clip;
    let rows = resume ? clip.pack(resume.prediction) : undefined;
    const start = resume && rows ? { ...resume, previous: rows } : clip.pack(noise(0));
    solver = await Solver.open(backend, scheduler, guidanceScale, start, rowWidth);
    const velocities: DeviceTensor<'float32'>[] = [solver.conditional];
    if (solver.unconditional) velocities.push(solver.unconditional);
    const steps = Array.from({ length: scheduler.steps }, (_, step) => scheduler.step(step));
    const cached = cachedVelocity(clip, cache, steps.flat().length);
    const first = resume?.step ?? 0;
    let index = steps.slice(0, first).flat().length;
    for (const [i, evaluations] of steps.slice(first).entries()) {
      const step = first + i;
      const guided = step < guidedSteps;
      const outputs = guided ? velocities : velocities.slice(0, 1);
      for (const evaluation of evaluations) {
        signal?.throwIfAborted();
        const { timestep, predict } = evaluation;
        await cached.velocity(index++, timestep, solver.sample, outputs, signal);
        const fresh = predict.noise === 0 ? undefined : clip.pack(noise(step + 1));
        const scale = request.guidanceAt?.(timestep) ?? guidanceScale;
        await solver.apply(evaluation, fresh, guided ? scale : 1);
      }
      rows = await backend.read(solver.prediction);
      solver.commit(step + 1);
      const prediction = predictionOf(clip, solver, rows, cached.isResumable(index - 1));
      if (await request.afterStep?.(step, prediction)) break;
    }
    if (!rows) throw new TypeError('the schedule has no steps');
    return clip.unpack(rows);
  } catch (error) {
    if (!(error instanceof KinoraError) || error.code !== 'OUT_OF_MEMORY') throw error;
    const { liveBytes } = backend.counters();
    // Reading ahead must end first: a buffer that it made after the recovery could fail again.
    await denoiser.stop();
    clip?.dispose();
    const saved = await rescue(backend, solver);
    const state = clip && saved ? stateOf(clip, saved) : resume;
    throw new DenoiseInterrupted(error, state, liveBytes);
  } finally {
    clip?.dispose();
    solver?.dispose();
  }
}

function predictionOf(
  clip: ClipDenoiser,
  solver: Solver,
  rows: Float32Array,
  isResumable: boolean,
): Prediction {
  return {
    rows,
    latents: () => clip.unpack(rows),
    async save() {
      const saved = isResumable ? await solver.save(rows) : null;
      return saved && stateOf(clip, saved);
    },
  };
}

function stateOf(clip: ClipDenoiser, { previous, ...saved }: SolverState): DenoiseState {
  return { ...saved, prediction: clip.unpack(previous) };
}

/**
 * Reads the solver's state after the memory ran out; null where no step was completed for certain.
 */
async function rescue(backend: Backend, solver: Solver | undefined): Promise<SolverState | null> {
  for (let attempt = 0; attempt < 2; attempt++) {
    await backend.recover();
    try {
      return (await solver?.save()) ?? null;
    } catch (error) {
      // The device may report an earlier failure only now; the values that were read are valid.
      if (!(error instanceof KinoraError) || error.code !== 'OUT_OF_MEMORY') throw error;
    }
  }
  await backend.recover();
  return null;
}
