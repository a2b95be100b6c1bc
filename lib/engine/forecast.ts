import {
  type DeviceOptions,
  type DeviceReport,
  type Finishing,
  frameCount,
  KinoraError,
  type ModelManifest,
  type Precision,
  type Size,
  sourcesFor,
  usualKernels,
} from '../contract';
import { appUrl } from '../contract/site';
import { joinOf, planClips } from '../pipeline/clips';
import { RunEstimator } from '../pipeline/estimate/estimator';
import { stagesOf } from '../pipeline/estimate/stages';
import { longestClip, type MemoryPlan, MemoryPlanner } from '../pipeline/memory/plan';
import type { ModelCounts, ModelFamilies } from '../pipeline/model';
import { familyOf } from '../pipeline/open';
import type { Sampling } from '../pipeline/profiles';
import { createScheduler } from '../pipeline/schedulers';
import { sampledFrames } from '../safety/check';
import { httpFolder, type ModelFolder } from '../weights';
import { modelFolderOf, openModelStore } from '../weights/store';
import { knownPaces } from './run-estimate';

/** A request of which is to be known what it takes, before anything is computed or opened for it. */
export interface ForecastRequest {
  readonly manifest: ModelManifest;
  /** Of its weights in this browser, or as they would be fetched. */
  readonly precision: Precision;
  readonly sampling: Sampling;
  readonly size: Size;
  /** Seconds. */
  readonly duration: number;
  readonly finishing: Finishing;
  readonly device: DeviceOptions;
  /** The engine's report; null where there is none. */
  readonly gpu: DeviceReport | null;
  readonly checked: boolean;
}

/** Bytes of device memory. */
export interface MemoryForecast {
  /** With everything resident. */
  readonly full: number;
  /** In the smallest plan. */
  readonly least: number;
  /** Within the budget; null where nothing fits it. */
  readonly planned: number | null;
}

/** What a request takes. LoRAs are not counted: they add little. */
export interface Forecast {
  readonly time: {
    readonly seconds: number;
    /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
    readonly measured: boolean;
  };
  /** Null where it was not asked for. */
  readonly memory: MemoryForecast | null;
  /** Bytes that the model's weights take in the store. */
  readonly weightBytes: number;
}

/**
 * Counts a request by the configuration files of its model. It uses no GPU.
 *
 * @param withMemory whether the memory is counted too, which takes seconds for a large model
 * @throws KinoraError of configuration files that are missing or invalid
 */
export async function forecast(
  families: ModelFamilies,
  request: ForecastRequest,
  withMemory: boolean,
): Promise<Forecast> {
  const { manifest, precision, device, checked } = request;
  const family = familyOf(families, manifest);
  const configuration = await configurationOf(manifest);
  const counts = await family.count(precision, configuration);
  const frames = frameCount(manifest, request.duration);
  const gpu = device.backend === 'webgpu' ? request.gpu : null;
  const planner = withMemory ? await plannerOf(counts, request, frames, gpu) : null;
  const plan = planner && planWithin(planner, device.memoryBudget);
  const { kind, paces } = await knownPaces(gpu, device, manifest.id);
  const checkedFrames = checked ? sampledFrames(frames).length : 0;
  const stages = stagesOf({ ...request, counts, frames, checkedFrames }, kind);
  const estimator = new RunEstimator(stages, paces);
  estimator.decodeWork = plan?.decodeWork ?? 1;
  const installation = await family.installation.plan(configuration);
  const needed = manifest.components.filter(({ faster }) => !faster);
  const stored = needed.map(({ id: component }) => {
    const source = sourcesFor(manifest, precision).find((each) => each.component === component);
    const blocks = source?.files.some(({ path }) => path.endsWith('.gguf')) ?? false;
    return installation.storedBytes(component, precision, blocks) ?? 0;
  });
  return {
    time: { seconds: estimator.secondsLeft(), measured: estimator.isMeasured },
    memory: planner && {
      full: planner.full.peak,
      least: planner.least.peak,
      planned: plan?.peak ?? null,
    },
    weightBytes: stored.reduce((sum, bytes) => sum + bytes, 0),
  };
}

async function plannerOf(
  counts: ModelCounts,
  { manifest, sampling, size, device }: ForecastRequest,
  frames: number,
  gpu: DeviceReport | null,
): Promise<MemoryPlanner> {
  const { scheduler, steps, flowShift } = sampling;
  const clips = planClips(frames, manifest.maxClipFrames, manifest.frameStride, joinOf(manifest));
  const { stochastic, evaluations } = createScheduler({ ...scheduler, steps, flowShift });
  const { costs } = await counts.planMemory({
    native: longestClip(manifest, size, Math.max(...clips.map((clip) => clip.frames)), sampling),
    decoder: sampling.decoder,
    reusesBlocks: sampling.cache?.kind === 'magcache',
    stochastic,
    evaluations,
    kernels: gpu ? (device.kernels ?? usualKernels(gpu.software)) : 'runtime',
  });
  return new MemoryPlanner(costs, gpu?.limits.maxBufferSize);
}

/** Null where nothing fits. */
function planWithin(planner: MemoryPlanner, budget: number | undefined): MemoryPlan | null {
  try {
    return budget === undefined ? planner.full : planner.fit(budget);
  } catch (thrown) {
    if (thrown instanceof KinoraError && thrown.code === 'OUT_OF_MEMORY') return null;
    throw thrown;
  }
}

/** The configuration files of a bundled or listed model, or of one that was added to this browser. */
async function configurationOf({ id, base, files }: ModelManifest): Promise<ModelFolder> {
  if (base === undefined)
    return modelFolderOf((await openModelStore()).folder(id).folder('configuration'));
  const url = appUrl(`/models/${base}`);
  return httpFolder(url, { files });
}

/** Interface of the forecast worker, called through Comlink. */
export interface ForecastApi {
  /** As {@link forecast}. */
  forecast(request: ForecastRequest, withMemory: boolean): Promise<Forecast>;
}
