import { type ModelManifest, type Phase, type Size, sizeInPixels } from '../../contract';
import { easyCacheLimits, magCacheSkips, type StepCache } from '../caches';
import { planClips } from '../clips';
import { latentSizeOf } from '../latents';
import type { ModelCounts } from '../model';
import type { Sampling } from '../profiles';
import { createScheduler } from '../schedulers';

/** What work is counted in; each has a rate of its own on a device. */
export type Cost =
  | 'optimise'
  | 'open'
  | 'text'
  | 'image'
  | 'load'
  | 'denoise'
  | 'decode'
  | 'tiny-decode'
  | 'check'
  | 'finish';

/** One stage of a run. `open` is the first part of the phase `load`, before a clip is under way. */
export interface Stage {
  readonly phase: Phase | 'open';
  readonly clip: number;
  readonly cost: Cost;
  /** Bytes, floating-point operations, pixels or pieces, as the cost is counted. */
  readonly total: number;
  /** Graphs that are run, where they are counted. */
  readonly calls?: number;
  /** Pixels that are scaled and encoded on the way. */
  readonly pixels?: number;
  /** The share of each step, where they differ: two passes with guidance, fewer where a cache reuses some. */
  readonly steps?: readonly number[];
  /** Frames of its video that a decode hands out. */
  readonly frames?: number;
}

/** A run whose work is counted. */
export interface CountedRun {
  readonly manifest: ModelManifest;
  readonly counts: Omit<ModelCounts, 'planMemory'>;
  readonly sampling: Sampling;
  readonly size: Size;
  readonly frames: number;
  readonly optimises: boolean;
  /** Whether it only decodes latents that an earlier run has made; false when absent. */
  readonly decodesOnly?: boolean;
  /** Frames that the safety checker looks at; 0 without it. */
  readonly checkedFrames: number;
}

/** The stages of a run with their work, in order. */
export function stagesOf(run: CountedRun): Stage[] {
  const { manifest, counts, sampling, size, frames, optimises, decodesOnly, checkedFrames } = run;
  const native = manifest.nativeSizes[size];
  const { width, height } = sizeInPixels(size);
  const passes = passesOfSteps(sampling);
  const ofSteps = sum(passes);
  const stages: Stage[] = [];
  if (optimises) stages.push({ phase: 'optimise', clip: 0, cost: 'optimise', total: 1 });
  stages.push({ phase: 'open', clip: 0, cost: 'open', total: 1 });
  if (!decodesOnly) {
    stages.push({ phase: 'text', clip: 0, cost: 'text', total: counts.weightBytes('text') });
  }
  const clips = planClips(frames, manifest.maxClipFrames, counts.latents.strides.time);
  for (const [clip, { frames: ofClip, dropFirst }] of clips.entries()) {
    const latents = latentSizeOf(counts.latents, { ...native, frames: ofClip });
    const { pass, decode } = counts.computation(latents, sampling.decoder);
    if (!decodesOnly) {
      stages.push(
        { phase: 'image', clip, cost: 'image', total: native.width * native.height },
        { phase: 'load', clip, cost: 'load', total: counts.weightBytes('denoise') },
        {
          phase: 'denoise',
          clip,
          cost: 'denoise',
          total: ofSteps * pass.flops,
          calls: ofSteps * pass.calls,
          steps: passes.map((count) => count / ofSteps),
        },
      );
    }
    const handedOut = ofClip - (dropFirst ? 1 : 0);
    stages.push({
      phase: 'decode',
      clip,
      cost: sampling.decoder === 'tiny' ? 'tiny-decode' : 'decode',
      total: decode.flops,
      calls: decode.calls,
      pixels: handedOut * width * height,
      frames: handedOut,
    });
  }
  if (checkedFrames > 0)
    stages.push({ phase: 'check', clip: 0, cost: 'check', total: checkedFrames });
  stages.push({ phase: 'finish', clip: 0, cost: 'finish', total: frames });
  return stages;
}

/** Share of a stage that is done after so many of its steps. */
export function shareOfSteps({ steps = [] }: Stage, done: number): number {
  return sum(steps.slice(0, done));
}

/** What a pass costs whose blocks are not run. */
const reusedPass = 0.03;
/** Passes that EasyCache computes where it may reuse; how many it does depends on the video. */
const easyCachePass = 0.5;

/** Passes of the denoiser in each step: two with guidance, fewer where a cache reuses some, more with some samplers. */
function passesOfSteps({
  scheduler,
  steps,
  flowShift,
  guidanceScale,
  guidedSteps = steps,
  cache = { kind: 'none' },
}: Sampling): number[] {
  const schedule = createScheduler({ ...scheduler, steps, flowShift });
  const evaluations = Array.from({ length: steps }, (_, step) => schedule.step(step).length);
  const branch = computedPasses(cache, sum(evaluations));
  let first = 0;
  return evaluations.map((count, step) => {
    const guided = guidanceScale > 1 && step < guidedSteps;
    let passes = 0;
    for (const end = first + count; first < end; first++) {
      passes += branch(0, first) + (guided ? branch(1, first) : 0);
    }
    return passes;
  });
}

/** @param steps evaluations of the model, each of which is a step to a cache */
function computedPasses(cache: StepCache, steps: number) {
  switch (cache.kind) {
    case 'none':
      return () => 1;
    case 'magcache': {
      const skips = magCacheSkips(steps, cache.settings);
      return (branch: 0 | 1, step: number) => (skips[branch][step] ? reusedPass : 1);
    }
    case 'easycache': {
      const first = Math.ceil(easyCacheLimits.computedShare * steps);
      return (_: 0 | 1, step: number) => (step < first || step === steps - 1 ? 1 : easyCachePass);
    }
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
