import {
  type Finishing,
  finishersOf,
  formatOfFile,
  type ModelManifest,
  nativeSizeOf,
  type Phase,
  type Size,
} from '../../contract';
import { type ClipJoin, joinOf, planClips } from '../clips';
import { latentSizeOf } from '../latents';
import type { ModelCounts } from '../model';
import type { Sampling } from '../profiles';
import { passesOfSteps } from '../step-cache';

/** Kinds of work; each has a pace of its own on a device. `open` is the first part of the phase `load`. */
export type Cost = Phase | 'open' | 'tiny-decode';

/**
 * Seconds of an operation (a GPU is taken to compute 10 TFLOP/s), of a graph of the denoiser and of the decoder, of a
 * pixel of the image, and of one that is scaled and encoded. The emulated GPU is as two models found it on two
 * cores, one where nearly all is graphs and one where little is; an operation of the CPU is one of the bundled model.
 */
export const usualRates = {
  gpu: { operation: 1e-13, pass: 0, decode: 0, pixel: 1e-6, encoded: 3e-8 },
  emulated: { operation: 2e-9, pass: 0.017, decode: 0.008, pixel: 2e-5, encoded: 1e-7 },
  cpu: { operation: 3e-11, pass: 0.002, decode: 0.001, pixel: 1e-6, encoded: 5e-8 },
};
/** The same of any device: to rewrite the prompt, to open a model, a byte of weights, a frame checked and written. */
const usual = { optimise: 20, open: 2, byte: 5e-9, check: 0.5, frame: 1e-3 };
/** Operations a pixel and graphs of a frame between two and of a larger one (lib/finishing/README.md). */
const finisherWork = {
  interpolator: { flops: 44_400, calls: 7 },
  upscaler: { flops: 2_375_000, calls: 1 },
};

/** One stage of a run. */
export interface Stage {
  readonly phase: Phase;
  readonly clip: number;
  readonly cost: Cost;
  /** Seconds of a usual device of the class for each of its pieces. */
  readonly pieces: readonly number[];
  /** Frames that it hands out, and those that stages before it do. */
  readonly frames: number;
  readonly framesBefore: number;
}

/** A run whose work is counted. */
export interface CountedRun {
  readonly manifest: ModelManifest;
  readonly counts: Omit<ModelCounts, 'planMemory'>;
  readonly sampling: Sampling;
  readonly size: Size;
  readonly frames: number;
  readonly finishing: Finishing;
  /** Whether its prompt is rewritten first; false when absent. */
  readonly optimises?: boolean;
  /** Whether it only decodes latents that an earlier run has made; false when absent. */
  readonly decodesOnly?: boolean;
  /** How its clips go on from one another; as the manifest says when absent. */
  readonly join?: ClipJoin;
  /** Frames that the safety checker looks at; 0 without it. */
  readonly checkedFrames: number;
}

/** The stages of a run with their work, in order. */
export function stagesOf(run: CountedRun, device: keyof typeof usualRates): Stage[] {
  const { manifest, counts, sampling, size, frames, decodesOnly, join = joinOf(manifest) } = run;
  const rates = usualRates[device];
  const native = nativeSizeOf(manifest, sampling, size);
  const pixels = native.width * native.height;
  const format = formatOfFile({ ...run.finishing, size }, manifest.framesPerSecond);
  const perFrame = format.frameRate / manifest.framesPerSecond;
  const finishing = finishersOf(run.finishing).map((part) => {
    const { flops, calls } = finisherWork[part];
    // A frame between two is made once for each decoded one, a larger one for each of the file.
    const times = part === 'upscaler' ? perFrame : 1;
    return times * (rates.operation * flops * pixels + rates.decode * calls);
  });
  const ofFrame = rates.encoded * perFrame * format.width * format.height + sum(finishing);
  const passes = passesOfSteps(sampling);

  const stages: Stage[] = [];
  let framesBefore = 0;
  /** Work in pieces of these sizes. */
  const add = (cost: Cost, clip: number, seconds: number, sizes = [1], frames = 0) => {
    const phase = cost === 'open' ? 'load' : cost === 'tiny-decode' ? 'decode' : cost;
    const pieces = sizes.map((size) => (seconds * size) / sum(sizes));
    if (seconds > 0) stages.push({ phase, clip, cost, pieces, frames, framesBefore });
  };
  if (run.optimises) add('optimise', 0, usual.optimise);
  add('open', 0, usual.open);
  if (!decodesOnly) add('text', 0, usual.byte * counts.weightBytes('text'));
  const clips = planClips(frames, manifest.maxClipFrames, counts.latents.strides.time, join);
  for (const [clip, { frames: ofClip, shared }] of clips.entries()) {
    const secondsOf = (network: 'pass' | 'decode', clipFrames: number) => {
      const latents = latentSizeOf(counts.latents, { ...native, frames: clipFrames });
      const { flops, calls } = counts.computation(latents, sampling.decoder)[network];
      return rates.operation * flops + rates[network] * calls;
    };
    if (!decodesOnly) {
      add('image', clip, rates.pixel * pixels);
      add('load', clip, usual.byte * counts.weightBytes('denoise'));
      add('denoise', clip, sum(passes) * secondsOf('pass', ofClip), passes);
    }
    // Clips that keep the motion are decoded as one, with the last of them.
    if (join.keepsMotion && clip < clips.length - 1) continue;
    const [decoded, newFrames] = join.keepsMotion ? [frames, frames] : [ofClip, ofClip - shared];
    const cost = sampling.decoder === 'tiny' ? 'tiny-decode' : 'decode';
    add(cost, clip, secondsOf('decode', decoded) + newFrames * ofFrame, [1], newFrames);
    framesBefore += newFrames;
  }
  add('check', 0, usual.check * run.checkedFrames);
  add('finish', 0, usual.frame * frames * perFrame);
  return stages;
}

export function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
