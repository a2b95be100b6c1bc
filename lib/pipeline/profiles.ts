import type { Applied, CacheKind } from '../contract/applied';
import { KinoraError } from '../contract/errors';
import { profileTitles } from '../contract/format';
import { unusedParameters } from '../contract/parameters';
import type { FewStepAdapter, Profile } from '../contract/profile';
import { type DecoderKind, type ProfileName, profileNames } from '../contract/profile-names';
import type { Parameters } from '../contract/request';
import type { RunOptions } from '../contract/run';
import type { StepCache } from './caches';
import type { VideoModel } from './model';

/** How a video is sampled and decoded: what the profile fixes, and the request's values for the rest. */
export interface Sampling {
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

/** What a request and a profile come to with an opened model. */
export interface ResolvedSampling {
  readonly sampling: Sampling;
  /** Strength of the model's own adapter; 0 without it. */
  readonly adapterScale: number;
  readonly applied: Applied;
  /** One line to show before the run; null where everything is as the request says. */
  readonly sentence: string | null;
}

type Asked = Pick<Parameters, 'num_inference_steps' | 'guidance_scale' | 'flow_shift'>;
type SampledModel = Pick<VideoModel, 'manifest' | 'decoders' | 'adapter'>;

/**
 * Request → profile → run: the sampling of a request under one of the model's variants. Where the profile
 * has adapters for few steps and the model brings one of them, it is sampled as that adapter wants;
 * otherwise the profile's own settings hold.
 *
 * @throws KinoraError `PARAMETER_INVALID` where the manifest has no such profile, `MODEL_FILE_MISSING` where the
 * tiny decoder is asked for and the model has none
 */
export function resolveSampling(
  model: SampledModel,
  name: ProfileName,
  requested: Asked,
  options: Pick<RunOptions, 'decoder' | 'cache'> = {},
): ResolvedSampling {
  const { manifest } = model;
  // A request may come from another version, whose profiles are others.
  if (!Object.hasOwn(manifest.profiles, name)) {
    const known = profileNames.join(' and ');
    const sentence = `${manifest.name} has no profile "${name}"; it has ${known}.`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  const profile = manifest.profiles[name];
  const { adapter, reason } = adapterFor(model, profile);
  const scheduler = adapter?.scheduler ?? profile.scheduler;
  const listed = scheduler.timesteps;
  const fixed = {
    steps: listed?.length ?? profile.steps,
    guidance: adapter?.guidance ?? profile.guidance,
  };
  const wantedSteps = fixed.steps ?? requested.num_inference_steps;
  const steps = listed ? listed.length : Math.min(wantedSteps, profile.mostSteps ?? wantedSteps);
  const guidanceScale = fixed.guidance ?? requested.guidance_scale;
  const guidedSteps = guidanceScale > 1 ? Math.ceil(profile.guidedShare * steps) : 0;
  const cache = cacheFor(model, !adapter && (options.cache ?? profile.cache));
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
    adapter: adapter && { name: adapter.name, licence: adapter.licence },
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
  };
  const plain = name === 'standard' && cache.kind === 'none' && applied.unused.length === 0;
  return {
    sampling,
    adapterScale: adapter?.scale ?? 0,
    applied,
    sentence: plain ? null : profileSentence(name, applied, reason),
  };
}

/** The profile's adapter that the model brings, or why it brings none. */
function adapterFor(
  { adapter, manifest }: SampledModel,
  { adapters }: Profile,
): { adapter: FewStepAdapter | null; reason: string | null } {
  if (adapters.length === 0) return { adapter: null, reason: null };
  if (!adapter) return { adapter: null, reason: 'no few-step adapter is installed' };
  const { source, misfit } = adapter;
  if (misfit) return { adapter: null, reason: `its adapter does not fit ${manifest.name}` };
  // A bundled model brings the first.
  const offered = adapters.find((choice) => source === null || isFile(choice, source));
  if (offered) return { adapter: offered, reason: null };
  return { adapter: null, reason: 'the installed adapter is not one of the profile' };
}

/** @param source `owner/name/path@revision` or the name of a local file */
function isFile({ repository, path }: FewStepAdapter, source: string): boolean {
  return source.startsWith(`${repository}/${path}@`) || source === path.split('/').at(-1);
}

function cacheFor({ manifest }: SampledModel, enabled: boolean): StepCache {
  if (!enabled) return { kind: 'none' };
  const { magcache } = manifest;
  return magcache ? { kind: 'magcache', settings: magcache } : { kind: 'easycache' };
}

function decoderFor(
  { decoders, manifest }: SampledModel,
  profile: Profile,
  requested: DecoderKind | undefined,
): DecoderKind {
  const decoder = requested ?? profile.decoder;
  if (decoders.includes(decoder)) return decoder;
  if (requested === undefined) return 'full';
  throw new KinoraError(
    'MODEL_FILE_MISSING',
    `${manifest.name} has no ${requested} decoder here.`,
    {
      remedy: 'Download the tiny decoder on the Models page, or decode with the full decoder.',
    },
  );
}

const cacheNames: Readonly<Record<CacheKind, string | null>> = {
  none: null,
  magcache: 'MagCache',
  easycache: 'EasyCache',
};

const parameterTexts: Readonly<Record<(typeof unusedParameters)[number], string>> = {
  num_inference_steps: 'steps',
  guidance_scale: 'guidance',
  flow_shift: 'flow shift',
};

/**
 * What a run is made with, in one line.
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
    `${steps} ${steps === 1 ? 'step' : 'steps'}${adapter ? ` with ${adapter.name}` : ''}`,
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
