import {
  type Applied,
  cacheNames,
  type FewStepAdapter,
  isAdapterFile,
  type ModelEntry,
  type ProfileName,
} from '../../../lib/contract';
import type { ResolvedSampling } from '../../../lib/pipeline/profiles';
import { t } from '../../texts';
import '../../texts/en/form';

/**
 * What a run is made with, in one line; null where everything is as the form says. It is the sentence of
 * `resolveSampling` in the language of the page.
 */
export function profileText(
  { manifest, stored }: ModelEntry,
  name: ProfileName,
  { applied, sentence }: ResolvedSampling,
): string | null {
  if (sentence === null) return null;
  const { steps, guidance_scale: guidance, adapter, decoder, unused } = applied;
  const parts = [
    adapter
      ? t('form.runs.stepsWith', { steps, adapter: adapterText(adapter) })
      : t('form.runs.steps', { steps }),
    guidanceText(guidance, applied.guided_steps, steps),
    cacheNames[applied.cache],
    t(`form.runs.decoders.${decoder}`),
  ].filter((part) => part !== null);
  const { adapters } = manifest.profiles[name];
  const source = stored.find(({ component }) => component === 'adapter')?.sources[0]?.name;
  const profile = t(`names.profile.${name}`);
  const title =
    adapter || adapters.length === 0 ? profile : t(lacking(adapters, source), { profile });
  const sentences = [t('form.runs.with', { title, parts: listed(parts) })];
  const left = unused.map((parameter) => t(`form.runs.parameters.${parameter}`));
  const last = left.pop();
  if (last !== undefined) {
    const names = left.length === 0 ? last : t('form.runs.and', { first: listed(left), last });
    sentences.push(t('form.runs.unused', { names }));
  }
  if (adapter && !adapter.licence.commercial) {
    const values = { adapter: adapter.name, licence: adapter.licence.name };
    sentences.push(t('form.runs.notCommercial', values));
  }
  return sentences.join(' ');
}

/** Why no adapter for few steps runs. */
function lacking(adapters: readonly FewStepAdapter[], source: string | undefined) {
  if (source === undefined) return 'form.runs.noAdapter';
  return adapters.some((each) => isAdapterFile(each, source))
    ? 'form.runs.noGuidanceAdapter'
    : 'form.runs.otherAdapter';
}

/** An adapter with its strength, where that is not the usual one. */
export function adapterText({ name, strength }: NonNullable<Applied['adapter']>): string {
  return strength === undefined ? name : t('form.runs.atStrength', { name, strength });
}

function guidanceText(guidance: number, guidedSteps: number, steps: number): string {
  if (guidance === 1) return t('form.runs.unguided');
  return guidedSteps < steps
    ? t('form.runs.guidedUntil', { step: guidedSteps })
    : t('form.runs.guidance', { guidance });
}

function listed(entries: readonly string[]): string {
  return entries.reduce((first, second) => t('shared.listOf', { first, second }));
}
