import {
  type Applied,
  cacheNames,
  type GenerationResult,
  type Parameters,
} from '../../../lib/contract';
import { Licence } from '../../models/licence';
import { Fact } from '../../shared/fact';
import { t } from '../../texts';
import '../../texts/en/run';
import { adapterText } from '../form/profile-text';

/** What a video was sampled and decoded with, as entries of a list of facts. */
export function AppliedFacts(props: { result: GenerationResult; parameters: Parameters }) {
  const { applied, profile, finishedEarly, lastStep } = props.result;
  const requestedSteps = props.parameters.num_inference_steps;
  const stepsText = (steps: string) => {
    if (!finishedEarly) return steps;
    if (!lastStep) return t('run.stepsEarly', { steps });
    return t('run.stepsEarlyAt', { steps, step: lastStep.step, total: lastStep.steps });
  };
  if (!applied) return <Fact name={t('run.steps')}>{stepsText(String(requestedSteps))}</Fact>;
  const { steps, adapter, decoder, cache } = applied;
  return (
    <>
      <Fact name={t('run.speed')}>{t(`names.profile.${profile ?? 'standard'}`)}</Fact>
      <Fact name={t('run.steps')}>
        {stepsText(
          steps === requestedSteps
            ? String(steps)
            : t('run.stepsInstead', { steps, asked: requestedSteps }),
        )}
      </Fact>
      <Fact name={t('run.guidance')}>{guidanceOf(applied)}</Fact>
      {adapter && (
        <Fact name={t('run.adapter')}>
          {t.rich(adapter.licence.commercial ? 'run.adapterOf' : 'run.adapterOfRestricted', {
            name: adapterText(adapter),
            licence: () => <Licence name={adapter.licence.name} url={adapter.licence.url} />,
          })}
        </Fact>
      )}
      {cacheNames[cache] && (
        <Fact name={t('run.reusedSteps')}>{t('run.reusedBy', { cache: cacheNames[cache] })}</Fact>
      )}
      <Fact name={t('run.decoder')}>{t(decoderTexts[decoder])}</Fact>
    </>
  );
}

const decoderTexts = {
  full: 'run.decoderFull',
  light: 'run.decoderLight',
  tiny: 'run.decoderTiny',
} as const;

function guidanceOf({ guidance_scale, guided_steps, steps }: Applied): string {
  if (guidance_scale === 1) return t('shared.none');
  return guided_steps < steps
    ? t('run.guidanceUntil', { guidance: guidance_scale, step: guided_steps })
    : String(guidance_scale);
}
