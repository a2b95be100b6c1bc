import {
  type DeviceOptions,
  type DeviceReport,
  frameCount,
  KinoraError,
  type ModelManifest,
  usualKernels,
} from '../contract';
import { hasSafetyChecker, type ModelEntry } from '../contract/library';
import { type ParametersInput, parseParameters } from '../contract/request';
import type { RunRequest } from '../contract/run';
import { appUrl } from '../contract/site';
import { joinOf, planClips } from '../pipeline/clips';
import { RunEstimator } from '../pipeline/estimate/estimator';
import type { CountedRun } from '../pipeline/estimate/stages';
import { longestClip, MemoryPlanner } from '../pipeline/memory/plan';
import type { ModelCounts, ModelFamilies } from '../pipeline/model';
import { familyOf } from '../pipeline/open';
import { resolveSampling, type StoredModel, storedModel } from '../pipeline/profiles';
import { createScheduler } from '../pipeline/schedulers';
import { httpFolder, type ModelFolder } from '../weights';
import { modelFolderOf, openModelStore } from '../weights/store';
import { knownPaces, stagesOn } from './run-estimate';

/** A request of which is to be known what it takes, before anything is computed or opened for it. */
export interface ForecastRequest extends Omit<RunRequest<ParametersInput>, 'model'> {
  readonly model: StoredModel & Pick<ModelEntry, 'precision'>;
  readonly device: DeviceOptions;
  /** The engine's report; null where there is none. */
  readonly gpu: DeviceReport | null;
}

/** What requests take together. LoRAs are not counted: they add little. */
export interface Forecast {
  readonly seconds: number;
  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  readonly measured: boolean;
  /** Of the last one; null where it was not asked for. */
  readonly memory: MemoryForecast | null;
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

/**
 * Counts requests by the configuration files of their models. It uses no GPU.
 *
 * @param withMemory whether the memory is counted too, which takes seconds for a large model
 * @throws KinoraError of parameters and configuration files that are missing or invalid
 */
export async function forecast(
  families: ModelFamilies,
  requests: readonly ForecastRequest[],
  withMemory = false,
): Promise<Forecast> {
  const all = { seconds: 0, measured: true, memory: null as MemoryForecast | null };
  for (const request of requests) {
    const { model, profile, device, options } = request;
    const { manifest } = model;
    const parameters = parseParameters(request.parameters);
    const { sampling } = resolveSampling(storedModel(model), profile, parameters, options);
    const gpu = device.backend === 'webgpu' ? request.gpu : null;
    const counts = await countsOf(families, model);
    const { size, duration } = parameters;
    const frames = frameCount(manifest, duration);
    const run = { manifest, counts, sampling, size, frames, finishing: parameters };
    const stages = stagesOn(gpu, hasSafetyChecker(model) ? options : {}, run);
    const { paces } = await knownPaces(gpu, device, manifest.id);
    const estimator = new RunEstimator(stages, paces);
    if (withMemory) {
      const planner = await plannerOf(run, counts, device, gpu);
      const plan = planWithin(planner, device);
      estimator.decodeWork = plan?.decodeWork ?? 1;
      const { full, least } = planner;
      all.memory = { full: full.peak, least: least.peak, planned: plan?.peak ?? null };
    }
    all.seconds += estimator.secondsLeft();
    all.measured &&= estimator.isMeasured;
  }
  return all;
}

async function countsOf(
  families: ModelFamilies,
  { manifest, stored, precision }: ForecastRequest['model'],
): Promise<ModelCounts> {
  const largest = stored.find(({ component }) => component === manifest.components[0]?.id);
  return familyOf(families, manifest).count(
    largest?.precision ?? precision ?? manifest.precision,
    await configurationOf(manifest),
  );
}

/** The configuration files of a bundled or listed model, or of one that was added to this browser. */
async function configurationOf({ id, base, files }: ModelManifest): Promise<ModelFolder> {
  return base === undefined
    ? modelFolderOf((await openModelStore()).folder(id).folder('configuration'))
    : httpFolder(appUrl(`/models/${base}`), { files });
}

async function plannerOf(
  { manifest, sampling, size, frames }: Omit<CountedRun, 'checkedFrames'>,
  counts: ModelCounts,
  { kernels }: DeviceOptions,
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
    kernels: gpu ? (kernels ?? usualKernels(gpu.software)) : 'runtime',
  });
  return new MemoryPlanner(costs, gpu?.limits.maxBufferSize);
}

/** Null where nothing fits. */
function planWithin(planner: MemoryPlanner, { memoryBudget }: DeviceOptions) {
  try {
    return memoryBudget === undefined ? planner.full : planner.fit(memoryBudget);
  } catch (thrown) {
    if (thrown instanceof KinoraError && thrown.code === 'OUT_OF_MEMORY') return null;
    throw thrown;
  }
}
