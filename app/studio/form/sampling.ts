import {
  type AdapterFile,
  type Applied,
  adapterStrengths,
  type Backend,
  type DeviceOptions,
  isAdapterFile,
  type ModelEntry,
  type ParametersInput,
  type ProfileName,
  parameterRanges,
  type RunOptions,
  type RunRequest,
  type SamplingOptions,
  type SamplingSwitch,
  samplingSwitches,
  samplingSwitchNames,
  type unusedParameters,
} from '../../../lib/contract';
import {
  profileAdapter,
  type ResolvedSampling,
  resolveSampling,
  type StoredModel,
  storedModel,
} from '../../../lib/pipeline/profiles';
import { deviceOptions } from '../../shared/device';
import { t } from '../../texts';
import '../../texts/en/form';
import {
  browserOptions,
  type FormState,
  type FormValues,
  toNumber,
  toParameters,
} from './form-state';

/** What of a request the profile leaves open. */
export type Choices = Pick<FormValues, 'profile' | keyof SamplingOptions>;
type Unused = (typeof unusedParameters)[number];

/** How a parameter is shown that the profile does not use as it is. */
export interface UnusedNote {
  readonly sentence: string;
  /** What is used instead, `–` for nothing; null where the value can still be changed with an effect. */
  readonly shown: string | null;
}

/**
 * What the engine will make of the form with a model, by what is stored of it. Whether an adapter fits the
 * model is found out when the engine opens it; then its own line says so.
 *
 * @returns null where the model is not in this browser
 */
export function samplingOf(
  entry: ModelEntry | undefined,
  values: FormValues,
): ResolvedSampling | null {
  if (!entry?.ready) return null;
  const numberOf = (name: Unused) => {
    const value = toNumber(values[name]);
    return Number.isFinite(value) ? value : parameterRanges[name].default;
  };
  return resolveSampling(
    storedModel(entry),
    values.profile,
    {
      num_inference_steps: numberOf('num_inference_steps'),
      guidance_scale: numberOf('guidance_scale'),
      flow_shift: numberOf('flow_shift'),
    },
    chosenSampling(entry, values),
  );
}

/** The switches that do something under the profile, with whether the model's files are there for them. */
export function offeredSwitches(
  entry: StoredModel,
  { profile }: Pick<FormValues, 'profile'>,
): { readonly name: SamplingSwitch; readonly available: boolean }[] {
  const { manifest } = entry;
  const { guidanceAdapter } = manifest.profiles[profile];
  return samplingSwitchNames
    .filter((name) => samplingSwitches[name].isOffered(manifest, profile))
    .map((name) => ({
      name,
      available: name !== 'guidanceAdapter' || hasAdapter(entry, guidanceAdapter),
    }));
}

/** Whether the guidance adapter of a profile is stored. */
function hasAdapter(entry: StoredModel, file: AdapterFile | undefined): boolean {
  const source = storedModel(entry).adapters.guidance_adapter?.source;
  return source === null || (!!file && source !== undefined && isAdapterFile(file, source));
}

/** The options of a request, as far as they mean something with the model's profile. */
export function chosenSampling(entry: StoredModel, values: Choices): SamplingOptions {
  const { profile, adapterStrength } = values;
  const chosen: SamplingOptions = Object.fromEntries(
    offeredSwitches(entry, values).map(({ name, available }) => {
      return [name, available ? values[name] : undefined];
    }),
  );
  const isDefault = adapterStrength === adapterStrengths.default;
  const model = storedModel(entry);
  const hasStrength = !isDefault && profileAdapter(model, profile, chosen.guidanceAdapter) !== null;
  // A request may come from a browser that has the light decoder.
  const isHere = chosen.decoder === undefined || model.decoders.includes(chosen.decoder);
  return {
    ...chosen,
    decoder: isHere ? chosen.decoder : undefined,
    adapterStrength: hasStrength ? adapterStrength : undefined,
  };
}

/** The options of a video with what its profile does alone. */
export const usualSampling: SamplingOptions = {
  decoder: undefined,
  cache: undefined,
  guidanceAdapter: undefined,
  adapterStrength: undefined,
};

/** The options that lead to what a video was made with. */
export function askedSampling(profile: ProfileName, applied?: Applied): SamplingOptions {
  if (!applied) return {};
  const { decoder, cache, adapter } = applied;
  const adapterStrength = adapter?.strength;
  return profile === 'standard'
    ? { cache: cache !== 'none', guidanceAdapter: adapter !== null, adapterStrength }
    : { decoder, adapterStrength };
}

/** All options of a request that come from the values of the form. @param entry absent until the models are known */
export function chosenOptions(entry: StoredModel | undefined, values: FormValues): RunOptions {
  return { ...(entry && chosenSampling(entry, values)), ...browserOptions(values) };
}

/** The run that the form asks for, without its files. Its parameters are not validated. */
export function runOfForm(
  model: ModelEntry,
  form: FormState,
  backend: Backend,
): RunRequest<ParametersInput> & { readonly device: DeviceOptions } {
  const { values } = form;
  return {
    model: model.manifest.id,
    profile: values.profile,
    parameters: toParameters(form),
    options: chosenOptions(model, values),
    device: { backend, ...deviceOptions(values) },
  };
}

/**
 * Whether guidance and flow shift are a pair with which Wan2.2 TI2V 5B is reported to give noise: 20 steps with
 * guidance 6 and shift 3 do, 30 steps with 5 and 5 do not.
 */
export function mayGiveNoise(entry: ModelEntry | undefined, resolved: ResolvedSampling | null) {
  // The bundled models of its family are others, by size and training.
  if (!resolved || entry?.manifest.family !== 'wan22' || entry.origin === 'bundled') return false;
  const { guidance_scale, flow_shift } = resolved.applied;
  return guidance_scale > 5 && flow_shift !== null && flow_shift < 5;
}

/** What to say of a parameter that a profile replaces or bounds; null where it is used as it is. */
export function unusedNote(name: Unused, resolved: ResolvedSampling | null): UnusedNote | null {
  if (!resolved?.applied.unused.includes(name)) return null;
  const { steps, guidance_scale: guidance, adapter, timesteps } = resolved.applied;
  if (name === 'guidance_scale' && adapter && !timesteps) {
    const sentence = t('form.unusedWith.replaced', { adapter: adapter.name });
    return { sentence, shown: '–' };
  }
  const say = (what: 'steps' | 'mostSteps' | 'unguided' | 'guidance' | 'schedule') =>
    adapter
      ? t(`form.unusedWith.${what}`, { adapter: adapter.name, steps, guidance })
      : t(`form.unused.${what}`, { steps, guidance });
  switch (name) {
    case 'num_inference_steps':
      return timesteps
        ? { sentence: say('steps'), shown: String(steps) }
        : { sentence: say('mostSteps'), shown: null };
    case 'guidance_scale':
      return {
        sentence: say(guidance === 1 ? 'unguided' : 'guidance'),
        shown: String(guidance),
      };
    case 'flow_shift':
      return { sentence: say('schedule'), shown: '–' };
  }
}
