import type { ModelEntry } from '../../../lib/contract/library';
import { parameterRanges, type unusedParameters } from '../../../lib/contract/parameters';
import type { RunOptions } from '../../../lib/contract/run';
import { type ResolvedSampling, resolveSampling } from '../../../lib/pipeline/profiles';
import { t } from '../../texts';
import '../../texts/en/form';
import { type FormValues, toNumber } from './form-state';

/** What of a request the profile leaves open. */
export type Choices = Pick<FormValues, 'profile' | 'fullDecode' | 'cache'>;
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
  const { manifest, origin, stored } = entry;
  const bundled = origin === 'bundled';
  const part = (id: string) => stored.find(({ component }) => component === id);
  const source = part('adapter')?.sources[0]?.name;
  const hasTiny = bundled || part('tiny_decoder') !== undefined;
  const model = {
    manifest,
    decoders: hasTiny ? (['full', 'tiny'] as const) : (['full'] as const),
    adapter: bundled ? { source: null, misfit: null } : source ? { source, misfit: null } : null,
  };
  const asked = (name: Unused) => {
    const value = toNumber(values[name]);
    return Number.isFinite(value) ? value : parameterRanges[name].default;
  };
  return resolveSampling(
    model,
    values.profile,
    {
      num_inference_steps: asked('num_inference_steps'),
      guidance_scale: asked('guidance_scale'),
      flow_shift: asked('flow_shift'),
    },
    chosenSampling(entry, values),
  );
}

/** The options of a request, as far as they mean something with the model's profile. */
export function chosenSampling(
  { manifest }: Pick<ModelEntry, 'manifest'>,
  { profile, fullDecode, cache }: Choices,
): Pick<RunOptions, 'decoder' | 'cache'> {
  const { decoder } = manifest.profiles[profile];
  return {
    decoder: fullDecode && decoder === 'tiny' ? 'full' : undefined,
    cache: cache && profile === 'standard' ? true : undefined,
  };
}

/** What to say of a parameter that a profile replaces or bounds; null where it is used as it is. */
export function unusedNote(name: Unused, resolved: ResolvedSampling | null): UnusedNote | null {
  if (!resolved?.applied.unused.includes(name)) return null;
  const { steps, guidance_scale: guidance, adapter, timesteps } = resolved.applied;
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
