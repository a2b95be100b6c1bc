import {
  type AdapterFile,
  type AdapterPart,
  type Applied,
  adapterParts,
  adapterStrengths,
  cacheNames,
  type DecoderKind,
  decoderKinds,
  type FewStepAdapter,
  isAdapterFile,
  KinoraError,
  type ModelEntry,
  type ModelManifest,
  type NativeSizes,
  type Parameters,
  type Profile,
  type ProfileAdapter,
  type ProfileName,
  profileNames,
  profileTitles,
  type SamplingOptions,
  unusedParameters,
} from '../contract';
import type { AdapterScales, ModelAdapter, VideoModel } from './model';
import type { StepCache } from './step-cache';

/** How a video is sampled and decoded: what the profile fixes, and the request's values for the rest. */
export interface Sampling {
  /** The model's own when absent. */
  readonly nativeSizes?: NativeSizes;
  readonly scheduler: Profile['scheduler'];
  readonly steps: number;
  /** 1 is without guidance. */
  readonly guidanceScale: number;
  /** Steps from the first one that run with guidance; all when absent. */
  readonly guidedSteps?: number;
  readonly flowShift: number;
  readonly decoder: DecoderKind;
  /** None when absent. */
  readonly cache?: StepCache;
}

/** The sampling that results from a request, a profile and an opened model. */
export interface ResolvedSampling {
  readonly sampling: Sampling;
  readonly adapterScales: AdapterScales;
  /** The model's own adapters that run. */
  readonly adapters: readonly AdapterFile[];
  readonly applied: Applied;
  /** One line to show before the run; null where everything is as the request says. */
  readonly sentence: string | null;
}

type RequestedSampling = Pick<Parameters, 'num_inference_steps' | 'guidance_scale' | 'flow_shift'>;
type SampledModel = Pick<VideoModel, 'manifest' | 'decoders' | 'adapters'>;
/** A model by what is stored of it. */
export type StoredModel = Pick<ModelEntry, 'manifest' | 'origin' | 'stored'>;

/** A model of the library as the engine will find it when it opens it, where all adapters fit. */
export function storedModel({ manifest, origin, stored }: StoredModel) {
  const bundled = origin === 'bundled';
  const sourceOf = (part: string) =>
    bundled ? null : stored.find(({ component }) => component === part)?.sources[0]?.name;
  const parts = bundled ? manifest.components : stored.map(({ component }) => ({ id: component }));
  const hasDecoder = (kind: DecoderKind) => parts.some(({ id }) => id === `${kind}_decoder`);
  const adapters: Partial<Record<AdapterPart, ModelAdapter>> = {};
  for (const part of adapterParts) {
    const source = sourceOf(part);
    if (source !== undefined) adapters[part] = { source, misfit: null };
  }
  const decoders = decoderKinds.filter((kind) => kind === 'full' || hasDecoder(kind));
  return { manifest, decoders, adapters };
}

/**
 * Request → profile → run: the sampling of a request under one of the model's variants. Where the profile
 * has adapters for few steps and the model brings one of them, it is sampled as that adapter wants;
 * otherwise the profile's own settings hold. A guidance adapter takes the place of guidance where it is asked for.
 *
 * @throws KinoraError `PARAMETER_INVALID` where the manifest has no such profile, and for a strength out of
 * range or of no adapter; `MODEL_FILE_MISSING` where a decoder or the guidance adapter is asked for and
 * the model has none
 */
export function resolveSampling(
  model: SampledModel,
  name: ProfileName,
  requested: RequestedSampling,
  options: SamplingOptions = {},
): ResolvedSampling {
  const { manifest } = model;
  // A request may come from another version, whose profiles are others.
  if (!Object.hasOwn(manifest.profiles, name)) {
    const known = profileNames.join(' and ');
    const sentence = `${manifest.name} has no profile "${name}"; it has ${known}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  const profile = manifest.profiles[name];
  const { fewStep, reason } = fewStepFor(model, profile);
  const guidanceAdapter = options.guidanceAdapter ? guidanceFor(model, name) : null;
  const adapter = fewStep ?? guidanceAdapter;
  const strength = strengthOf(adapter, options.adapterStrength);
  const scheduler = fewStep?.scheduler ?? profile.scheduler;
  const listed = scheduler.timesteps;
  const fixed = {
    steps: listed?.length ?? profile.steps,
    guidance: guidanceAdapter ? 1 : (fewStep?.guidance ?? profile.guidance),
  };
  const wantedSteps = fixed.steps ?? requested.num_inference_steps;
  const steps = listed ? listed.length : Math.min(wantedSteps, profile.mostSteps ?? wantedSteps);
  const guidanceScale = fixed.guidance ?? requested.guidance_scale;
  const guidedSteps = guidanceScale > 1 ? Math.ceil(profile.guidedShare * steps) : 0;
  const cache = cacheFor(model, !fewStep && (options.cache ?? profile.cache));
  const lacksCache = !fewStep && options.cache === true && cache.kind === 'none';
  const used = {
    num_inference_steps: steps === requested.num_inference_steps && fixed.steps === undefined,
    guidance_scale: fixed.guidance === undefined,
    flow_shift: listed === undefined,
  };
  const decoder = decoderFor(model, profile, options.decoder);
  const applied: Applied = {
    steps,
    guidance_scale: guidanceScale,
    guided_steps: guidedSteps,
    scheduler: scheduler.kind,
    flow_shift: listed ? null : requested.flow_shift,
    ...(listed && { timesteps: listed }),
    adapter: adapter && {
      name: adapter.name,
      licence: adapter.licence,
      ...(strength !== 1 && { strength }),
    },
    decoder,
    cache: cache.kind,
    unused: unusedParameters.filter((parameter) => !used[parameter]),
  };
  const sampling = {
    scheduler,
    steps,
    guidanceScale,
    decoder,
    cache,
    ...(guidanceScale > 1 && { guidedSteps }),
    flowShift: requested.flow_shift,
    ...(profile.nativeSizes && { nativeSizes: profile.nativeSizes }),
  };
  const plain =
    name === 'standard' &&
    !adapter &&
    cache.kind === 'none' &&
    !lacksCache &&
    applied.unused.length === 0;
  return {
    sampling,
    adapterScales: scalesOf(fewStep, guidanceAdapter, strength),
    adapters: [fewStep, fewStep?.guidanceAdapter ?? guidanceAdapter].filter((one) => one != null),
    applied,
    sentence: plain
      ? null
      : profileSentence(name, applied, reason ?? (lacksCache ? noRatios : null)),
  };
}

/** The adapter that runs under a profile; null where none does. */
export function profileAdapter(
  model: SampledModel,
  name: ProfileName,
  guidanceAdapter = false,
): ProfileAdapter | null {
  const { fewStep } = fewStepFor(model, model.manifest.profiles[name]);
  return fewStep ?? (guidanceAdapter ? guidanceFor(model, name) : null);
}

/** The profile's adapter for few steps that the model brings, or why it brings none. */
function fewStepFor(
  model: SampledModel,
  { adapters }: Profile,
): { fewStep: FewStepAdapter | null; reason: string | null } {
  const without = (reason: string | null) => ({ fewStep: null, reason });
  const misfit = `its adapter does not fit ${model.manifest.name}`;
  if (adapters.length === 0) return without(null);
  if (!model.adapters.adapter) return without('no few-step adapter is installed');
  if (model.adapters.adapter.misfit) return without(misfit);
  const fewStep = adapters.find((each) => isInstalled(model, 'adapter', each));
  if (!fewStep) return without('the installed adapter is not one of the profile');
  const { guidanceAdapter } = fewStep;
  if (!guidanceAdapter) return { fewStep, reason: null };
  if (!isInstalled(model, 'guidance_adapter', guidanceAdapter)) {
    return without('the guidance adapter that belongs to its adapter is not installed');
  }
  return model.adapters.guidance_adapter?.misfit ? without(misfit) : { fewStep, reason: null };
}

/** The guidance adapter of a profile, which was asked for. */
function guidanceFor(model: SampledModel, name: ProfileName): ProfileAdapter {
  const { guidanceAdapter } = model.manifest.profiles[name];
  if (guidanceAdapter && isInstalled(model, 'guidance_adapter', guidanceAdapter)) {
    const misfit = model.adapters.guidance_adapter?.misfit;
    if (misfit) throw misfit;
    return guidanceAdapter;
  }
  const sentence = `${model.manifest.name} has no guidance adapter for ${name} here.`;
  throw new KinoraError('MODEL_FILE_MISSING', sentence, {
    remedy: 'Download the guidance adapter on the Models page, or run without it.',
  });
}

/** Whether the model brings an adapter of a profile as that part; a bundled model brings what its profiles name first. */
function isInstalled({ adapters }: SampledModel, part: AdapterPart, file: AdapterFile): boolean {
  const source = adapters[part]?.source;
  return source === null || (source !== undefined && isAdapterFile(file, source));
}

function strengthOf(adapter: ProfileAdapter | null, strength: number | undefined): number {
  if (strength === undefined) return adapterStrengths.default;
  const { min, max } = adapterStrengths;
  if (!(strength >= min && strength <= max)) {
    const sentence = `The strength of an adapter must be from ${min} to ${max}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  if (adapter) return strength;
  const sentence = 'No adapter of the model runs here that could have a strength.';
  throw new KinoraError('PARAMETER_INVALID', sentence);
}

function scalesOf(
  fewStep: FewStepAdapter | null,
  guidanceAdapter: ProfileAdapter | null,
  strength: number,
): AdapterScales {
  const guidance = fewStep?.guidanceAdapter ?? guidanceAdapter;
  return {
    ...(fewStep && { adapter: fewStep.scale * strength }),
    ...(guidance && { guidance_adapter: guidance.scale * strength }),
  };
}

function cacheFor({ manifest }: SampledModel, enabled: boolean): StepCache {
  if (!enabled) return { kind: 'none' };
  const { magcache } = manifest;
  return magcache ? { kind: 'magcache', settings: magcache } : { kind: 'none' };
}

function decoderFor(
  { decoders, manifest }: SampledModel,
  profile: Profile,
  requested: DecoderKind | undefined,
): DecoderKind {
  const decoder = requested ?? profile.decoder;
  if (decoders.includes(decoder)) return decoder;
  if (requested === undefined) return 'full';
  throw missingDecoder(manifest, requested);
}

/** The error for a decoder that the model comes without. */
export function missingDecoder({ name }: ModelManifest, decoder: DecoderKind): KinoraError {
  const remedy = `Download the ${decoder} decoder on the Models page, or decode with the full decoder.`;
  return new KinoraError('MODEL_FILE_MISSING', `${name} has no ${decoder} decoder here.`, {
    remedy,
  });
}

const noRatios = 'the model has no ratios for MagCache, so that every step is computed';

const parameterTexts: Readonly<Record<(typeof unusedParameters)[number], string>> = {
  num_inference_steps: 'steps',
  guidance_scale: 'guidance',
  flow_shift: 'flow shift',
};

function adapterText({ name, strength }: NonNullable<Applied['adapter']>): string {
  return strength === undefined ? name : `${name} at ${strength}`;
}

/**
 * The settings of a run in one line.
 *
 * @param reason why the profile's adapter is not used, where it has one
 */
export function profileSentence(
  name: ProfileName,
  { steps, guidance_scale, guided_steps, adapter, cache, decoder, unused }: Applied,
  reason: string | null,
): string {
  const guidance =
    guidance_scale === 1
      ? 'no guidance'
      : guided_steps < steps
        ? `guidance until step ${guided_steps}`
        : `guidance ${guidance_scale}`;
  const parts = [
    `${steps} ${steps === 1 ? 'step' : 'steps'}${adapter ? ` with ${adapterText(adapter)}` : ''}`,
    guidance,
    cacheNames[cache],
    `${decoder} decoder`,
  ].filter((part) => part !== null);
  const title = profileTitles[name] + (reason ? ` (${reason})` : '');
  const sentence = `${title}: ${parts.join(', ')}.`;
  const left = unused.map((parameter) => parameterTexts[parameter]);
  const licence =
    adapter && !adapter.licence.commercial
      ? ` ${adapter.name} may not be used commercially (${adapter.licence.name}).`
      : '';
  if (left.length === 0) return sentence + licence;
  const list = left.length > 1 ? `${left.slice(0, -1).join(', ')} and ${left.at(-1)}` : left[0];
  return `${sentence} Not used from the request: ${list}.${licence}`;
}
