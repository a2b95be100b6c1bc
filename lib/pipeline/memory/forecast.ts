import type { KernelSetting, ModelManifest, Size } from '../../contract';
import { joinOf, planClips } from '../clips';
import type { ModelCounts } from '../model';
import type { ResolvedSampling } from '../profiles';
import { longestClip, type MemoryPlan, MemoryPlanner, planRequestOf } from './memory-plan';

/** Device memory that a run takes. */
export interface MemoryForecast {
  /** Bytes with everything resident. */
  readonly full: number;
  /** Bytes in the smallest plan. */
  readonly least: number;
  /** The plan within the budget; null where nothing fits it. */
  readonly plan: Pick<MemoryPlan, 'peak' | 'decodeWork'> | null;
}

/** A device as far as a plan depends on it. */
interface PlannedDevice {
  readonly kernels: KernelSetting;
  readonly budget: number | undefined;
  /** Most bytes in one buffer. */
  readonly largestBuffer: number | undefined;
}

/** Plans the memory of a run by what its model counts. */
export async function forecastMemory(
  counts: ModelCounts,
  run: Pick<ResolvedSampling, 'sampling' | 'adapters'> & {
    manifest: ModelManifest;
    size: Size;
    frames: number;
  },
  { kernels, budget, largestBuffer }: PlannedDevice,
): Promise<MemoryForecast> {
  const { manifest, sampling, adapters } = run;
  const join = joinOf(manifest);
  const clips = planClips(run.frames, manifest.maxClipFrames, manifest.frameStride, join);
  const longest = Math.max(...clips.map(({ frames }) => frames));
  const native = longestClip(manifest, run.size, longest, sampling);
  const request = { ...planRequestOf(sampling, native), adapters, kernels };
  const { costs } = await counts.planMemory(request);
  const planner = new MemoryPlanner(costs, largestBuffer);
  const { full, least } = planner;
  const planOf = (bytes: number) => {
    const fits = least.peak <= bytes && least.largest <= planner.largestBuffer;
    return fits ? planner.fit(bytes) : null;
  };
  const plan = budget === undefined ? full : planOf(budget);
  return { full: full.peak, least: least.peak, plan };
}
