import type { Phase } from '../../contract';
import { easyCacheLimits, magCacheSkips, type StepCache } from '../caches';
import type { Clip } from '../clips';
import type { ModelCounts } from '../model';
import type { Sampling } from '../profiles';

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
  | 'encode'
  | 'check'
  | 'finish';

/** Each decoder has a rate of its own. */
export function isDecode(cost: Cost): boolean {
  return cost === 'decode' || cost === 'tiny-decode';
}

/** Some work of one cost. */
export interface Work {
  readonly cost: Cost;
  /** Bytes, floating-point operations, pixels or pieces, as the cost is counted. */
  readonly total: number;
  /** Graphs that are run for it, where they are counted. */
  readonly calls?: number;
  /** The work of each step, where the steps differ. */
  readonly steps?: readonly number[];
}

/** One stage of a run. `open` is the first part of the phase `load`, before a clip is under way. */
export interface Stage {
  readonly phase: Phase | 'open';
  readonly clip: number;
  readonly work: readonly Work[];
  /** Frames of its video that a decode hands out. */
  readonly frames?: number;
}

/** What the work of a run is counted from. */
export interface RunWork {
  readonly clips: readonly Clip[];
  readonly sampling: Sampling;
  /** What the model computes for a clip of so many frames. */
  readonly computation: (frames: number) => ReturnType<ModelCounts['computation']>;
  /** Bytes of weights that are read. */
  readonly bytes: { readonly text: number; readonly denoise: number };
  /** Pixels of one frame as the model makes it, and as it is encoded. */
  readonly pixels: { readonly native: number; readonly delivered: number };
  readonly optimises: boolean;
  /** Whether it only decodes latents that an earlier run has made; false when absent. */
  readonly decodesOnly?: boolean;
  /** Frames that the safety checker looks at; 0 without it. */
  readonly checkedFrames: number;
}

/** The stages of a run with their work, in order. */
export function stagesOf(run: RunWork): Stage[] {
  const { clips, sampling, bytes, pixels } = run;
  const passes = passesOfSteps(sampling);
  const stages: Stage[] = [];
  const add = (phase: Stage['phase'], clip: number, work: readonly Work[], frames?: number) =>
    stages.push({ phase, clip, work, ...(frames !== undefined && { frames }) });
  if (run.optimises) add('optimise', 0, [{ cost: 'optimise', total: 1 }]);
  add('open', 0, [{ cost: 'open', total: 1 }]);
  if (!run.decodesOnly) add('text', 0, [{ cost: 'text', total: bytes.text }]);
  for (const [clip, { frames, dropFirst }] of clips.entries()) {
    const { pass, decode } = run.computation(frames);
    const steps = passes.map((count) => count * pass.flops);
    const handedOut = frames - (dropFirst ? 1 : 0);
    if (!run.decodesOnly) {
      add('image', clip, [{ cost: 'image', total: pixels.native }]);
      add('load', clip, [{ cost: 'load', total: bytes.denoise }]);
      const calls = sum(passes) * pass.calls;
      add('denoise', clip, [{ cost: 'denoise', total: sum(steps), calls, steps }]);
    }
    const encoding = { cost: 'encode', total: handedOut * pixels.delivered } as const;
    const cost = sampling.decoder === 'tiny' ? 'tiny-decode' : 'decode';
    const decoding = { cost, total: decode.flops, calls: decode.calls } as const;
    add('decode', clip, [decoding, encoding], handedOut);
  }
  if (run.checkedFrames > 0) add('check', 0, [{ cost: 'check', total: run.checkedFrames }]);
  add('finish', 0, [{ cost: 'finish', total: sum(clips.map(({ frames }) => frames)) }]);
  return stages;
}

/** What a pass costs whose blocks are not run. */
const reusedPass = 0.03;
/** Passes that EasyCache computes where it may reuse; how many it does depends on the video. */
const easyCachePass = 0.5;

/** Passes of the denoiser in each step: two with guidance, fewer where a cache reuses some. */
export function passesOfSteps({
  steps,
  guidanceScale,
  guidedSteps = steps,
  cache = { kind: 'none' },
}: Pick<Sampling, 'steps' | 'guidanceScale' | 'guidedSteps' | 'cache'>): number[] {
  const branch = computedPasses(cache, steps);
  return Array.from({ length: steps }, (_, step) => {
    const guided = guidanceScale > 1 && step < guidedSteps;
    return branch(0, step) + (guided ? branch(1, step) : 0);
  });
}

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

/** Share of a work of several steps that is done after so many of them. */
export function shareOfSteps({ total, steps = [] }: Work, done: number): number {
  return total > 0 ? sum(steps.slice(0, done)) / total : 1;
}
