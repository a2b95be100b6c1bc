import {
  appUrl,
  type DeviceOptions,
  type DeviceReport,
  type EngineRequest,
  frameCount,
  hasSafetyChecker,
  type ModelEntry,
  type ParametersInput,
  type ProgressEvent,
  parseParameters,
  type RunRequest,
  usualKernels,
} from '../contract';
import { probeDevice } from '../gpu';
import { joinOf, keptLatents } from '../pipeline/clips';
import type { RunControl } from '../pipeline/control';
import { type Paces, RunEstimator } from '../pipeline/estimate/estimator';
import { type CountedRun, stagesOf } from '../pipeline/estimate/stages';
import { forecastMemory, type MemoryForecast } from '../pipeline/memory/forecast';
import type { ModelCounts, ModelFamilies, VideoModel } from '../pipeline/model';
import { familyOf } from '../pipeline/open';
import { resolveSampling, type StoredModel, storedModel } from '../pipeline/profiles';
import { KinoraDatabase } from '../predictions/database';
import { loadSetting, saveSetting } from '../predictions/settings';
import { sampledFrames } from '../safety/check';
import { httpFolder } from '../weights';
import { modelFolderOf, openModelStore } from '../weights/store';

const database = new KinoraDatabase();

/** The setting that keeps what was measured on a device with a model. @param gpu null for the CPU */
export function pacesKey(gpu: DeviceReport | null, { kernels }: DeviceOptions, model: string) {
  const device = gpu
    ? ['webgpu', ...Object.values(gpu.adapter), kernels ?? usualKernels(gpu.software)]
    : ['wasm', crossOriginIsolated ? navigator.hardwareConcurrency : 1];
  return ['paces', ...device, model].join('|');
}

/** The estimator of a run on a device, by what was measured there before. */
async function estimatorOf(
  gpu: DeviceReport | null,
  device: DeviceOptions,
  checks: boolean | undefined,
  run: Omit<CountedRun, 'checkedFrames'>,
  finishing?: () => boolean,
): Promise<RunEstimator> {
  const checkedFrames = checks ? sampledFrames(run.frames).length : 0;
  const kind = !gpu ? 'cpu' : gpu.software ? 'emulated' : 'gpu';
  const key = pacesKey(gpu, device, run.manifest.id);
  const kept = (await loadSetting(database, key).catch(() => undefined)) as Paces | undefined;
  return new RunEstimator(stagesOf({ ...run, checkedFrames }, kind), kept ?? {}, finishing);
}

/** Tells how far a run is, with its phases and steps and once a second. */
export async function followRun(
  { parameters, device, continuation, before, options }: EngineRequest,
  run: Pick<CountedRun, 'sampling' | 'frames' | 'optimises'> & { readonly model: VideoModel },
  control: RunControl,
  report: (event: ProgressEvent) => void,
) {
  const { model } = run;
  const { manifest } = model;
  const gpu = device.backend === 'webgpu' ? await probeDevice() : null;
  const counted = {
    ...run,
    manifest,
    counts: model,
    // How many latent frames an earlier video has is not read yet; it hardly counts.
    join: joinOf(manifest, before && keptLatents),
    size: parameters.size,
    finishing: parameters,
    decodesOnly: continuation === 'finish' || continuation === 'refine',
  };
  const finishing = () => control.finishing || continuation === 'finish';
  const estimator = await estimatorOf(gpu, device, options.safetyChecker, counted, finishing);
  // A run reports nothing before the work of an earlier run is known.
  let knowsStart = continuation !== 'resume';
  const say = () => {
    // The time of an emulated GPU depends on the machine, and its first step mostly on the compiler.
    const isKnown = !gpu?.software || estimator.isKnown;
    if (knowsStart && isKnown) report({ type: 'estimate', ...estimator.current() });
  };
  const phase = run.optimises ? 'optimise' : 'load';
  estimator.take({ type: 'phase', phase, clip: 0, clips: 1 });
  const timer = setInterval(say, 1000);
  return {
    /** Call it with each event before it is reported. */
    take(event: ProgressEvent): void {
      // The checkpoint is told before the first plan.
      if (event.type === 'plan') knowsStart = true;
      estimator.take(event);
      if (event.type === 'phase' || event.type === 'step') say();
    },
    /** Remembers what was measured. A full disk loses no video: then it is measured again. */
    async keep(): Promise<void> {
      const paces = { ...estimator.known, ...estimator.measured() };
      const key = pacesKey(gpu, device, manifest.id);
      await saveSetting(database, key, paces).catch(() => undefined);
    },
    end: () => clearInterval(timer),
  };
}

/** A request whose time and memory are counted, before anything is computed or opened for it. */
export interface ForecastRequest extends Omit<RunRequest<ParametersInput>, 'model'> {
  readonly model: StoredModel & Pick<ModelEntry, 'precision'>;
  readonly device: DeviceOptions;
  /** The engine's report; null where there is none. */
  readonly gpu: DeviceReport | null;
}

/** The time that requests take together. LoRAs are not counted: they add little. */
export interface Forecast {
  readonly seconds: number;
  /** Whether the pace of the denoiser was measured on this device; else it is what is usual. */
  readonly measured: boolean;
  /** That of the last one; null where it was not asked for. */
  readonly memory: MemoryForecast | null;
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
  let [seconds, measured] = [0, true];
  let memory: MemoryForecast | null = null;
  for (const { model, profile, options, device, ...request } of requests) {
    const { manifest } = model;
    const parameters = parseParameters(request.parameters);
    const known = storedModel(model);
    const { sampling, adapters } = resolveSampling(known, profile, parameters, options);
    const gpu = device.backend === 'webgpu' ? request.gpu : null;
    const counts = await countsOf(families, model);
    const { size, duration } = parameters;
    const frames = frameCount(manifest, duration);
    const run = { manifest, counts, sampling, adapters, size, frames, finishing: parameters };
    const checks = hasSafetyChecker(model) && options.safetyChecker;
    const estimator = await estimatorOf(gpu, device, checks, run);
    if (withMemory) {
      memory = await forecastMemory(counts, run, {
        kernels: gpu ? (device.kernels ?? usualKernels(gpu.software)) : 'runtime',
        budget: device.memoryBudget,
        largestBuffer: gpu?.limits.maxBufferSize,
      });
      estimator.decodeWork = memory.plan?.decodeWork ?? 1;
    }
    seconds += estimator.secondsLeft();
    measured &&= estimator.isMeasured;
  }
  return { seconds, measured, memory };
}

/** Counts a model by its configuration files: of a bundled or listed one, or of one that was added to this browser. */
async function countsOf(
  families: ModelFamilies,
  { manifest, stored, precision }: ForecastRequest['model'],
): Promise<ModelCounts> {
  const { id, base, files, components } = manifest;
  const largest = stored.find(({ component }) => component === components[0]?.id);
  const configuration =
    base === undefined
      ? modelFolderOf((await openModelStore()).folder(id).folder('configuration'))
      : httpFolder(appUrl(`/models/${base}`), { files });
  const used = largest?.precision ?? precision ?? manifest.precision;
  return familyOf(families, manifest).count(used, configuration);
}
