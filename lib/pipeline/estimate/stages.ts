import {
  type Finishing,
  formatOfFile,
  type ModelManifest,
  type Phase,
  type Size,
} from '../../contract';
import { easyCacheLimits, magCacheSkips, type StepCache } from '../caches';
import { type ClipJoin, joinOf, planClips } from '../clips';
import { latentSizeOf } from '../latents';
import type { Computation, ModelCounts } from '../model';
import type { Sampling } from '../profiles';
import { createScheduler } from '../schedulers';
import { type Cost, type DeviceClass, usualRates } from './rates';

/** One stage of a run. `open` is the first part of the phase `load`, before a clip is under way. */
export interface Stage {
  readonly phase: Phase | 'open';
  readonly clip: number;
  readonly cost: Cost;
  /** What a usual device of the class takes for it. */
  readonly seconds: number;
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
  readonly finishing: Finishing;
  readonly optimises: boolean;
  /** Whether it only decodes latents that an earlier run has made; false when absent. */
  readonly decodesOnly?: boolean;
  /** How its clips go on from one another; as the manifest says when absent. */
  readonly join?: ClipJoin;
  /** Frames that the safety checker looks at; 0 without it. */
  readonly checkedFrames: number;
}

/** The stages of a run with their work, in order. */
export function stagesOf(run: CountedRun, device: DeviceClass): Stage[] {
  const { manifest, counts, sampling, size, frames, finishing, optimises } = run;
  const { decodesOnly, checkedFrames, join = joinOf(manifest) } = run;
  const { optimise, open, byte, pixel, pass, decode, frame, check } = usualRates[device];
  const native = manifest.nativeSizes[size];
  const format = formatOfFile({ ...finishing, size }, manifest.framesPerSecond);
  const perFrame = format.frameRate / manifest.framesPerSecond;
  const pixels = perFrame * format.width * format.height;
  const flops = between.flops * native.width * native.height;
  const network = finishing.smooth ? seconds(decode, { ...between, flops }) : 0;
  const passes = passesOfSteps(sampling);
  const ofSteps = sum(passes);
  const stages: Stage[] = [];
  if (optimises) stages.push({ phase: 'optimise', clip: 0, cost: 'optimise', seconds: optimise });
  stages.push({ phase: 'open', clip: 0, cost: 'open', seconds: open });
  const textSeconds = byte * counts.weightBytes('text');
  if (!decodesOnly) stages.push({ phase: 'text', clip: 0, cost: 'text', seconds: textSeconds });
  const clips = planClips(frames, manifest.maxClipFrames, counts.latents.strides.time, join);
  for (const [clip, { frames: ofClip, shared }] of clips.entries()) {
    if (!decodesOnly) {
      const latents = latentSizeOf(counts.latents, { ...native, frames: ofClip });
      const { pass: ofPass } = counts.computation(latents, sampling.decoder);
      const steps = passes.map((count) => count / ofSteps);
      const loadSeconds = byte * counts.weightBytes('denoise');
      const denoiseSeconds = ofSteps * seconds(pass, ofPass);
      stages.push(
        { phase: 'image', clip, cost: 'image', seconds: pixel * native.width * native.height },
        { phase: 'load', clip, cost: 'load', seconds: loadSeconds },
        { phase: 'denoise', clip, cost: 'denoise', seconds: denoiseSeconds, steps },
      );
    }
    // Clips that keep the motion are decoded as one, with the last of them.
    if (join.keepsMotion && clip < clips.length - 1) continue;
    const [decoded, handedOut] = join.keepsMotion ? [frames, frames] : [ofClip, ofClip - shared];
    const sequence = latentSizeOf(counts.latents, { ...native, frames: decoded });
    const { decode: work } = counts.computation(sequence, sampling.decoder);
    stages.push({
      phase: 'decode',
      clip,
      cost: sampling.decoder === 'tiny' ? 'tiny-decode' : 'decode',
      seconds: seconds(decode, work) + handedOut * (network + decode.pixel * pixels),
      frames: handedOut,
    });
  }
  if (checkedFrames > 0)
    stages.push({ phase: 'check', clip: 0, cost: 'check', seconds: check * checkedFrames });
  stages.push({ phase: 'finish', clip: 0, cost: 'finish', seconds: frame * frames * perFrame });
  return stages;
}

function seconds(
  rate: { readonly operation: number; readonly call: number },
  { flops, calls }: Computation,
): number {
  return rate.operation * flops + rate.call * calls;
}

/** Computing a frame between each two (lib/finishing/README.md): operations a pixel, and graphs. */
const between = { flops: 44_400, calls: 7 };

/** Share of a stage that is done after so many of its steps. */
export function shareOfSteps({ steps = [] }: Stage, done: number): number {
  return sum(steps.slice(0, done));
}

/** What a pass costs whose blocks are not run. */
const reusedPass = 0.03;
/** Passes that EasyCache computes where it may reuse; how many it does depends on the video. */
const easyCachePass = 0.5;

/** Passes of the denoiser in each step: two with guidance, fewer where a cache reuses some, more with some samplers. */
function passesOfSteps(sampling: Sampling): number[] {
  const { scheduler, steps, flowShift, guidanceScale, guidedSteps = steps } = sampling;
  const schedule = createScheduler({ ...scheduler, steps, flowShift });
  const evaluations = Array.from({ length: steps }, (_, step) => schedule.step(step).length);
  const branch = computedPasses(sampling.cache ?? { kind: 'none' }, sum(evaluations));
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
