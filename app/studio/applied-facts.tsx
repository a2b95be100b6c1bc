import type { Applied, CacheKind } from '../../lib/contract/applied';
import { profileTitles } from '../../lib/contract/format';
import type { GenerationResult } from '../../lib/contract/progress';
import type { Parameters } from '../../lib/contract/request';
import { Fact } from '../shared/fact';

/** What a video was sampled and decoded with, as entries of a list of facts. */
export function AppliedFacts(props: { result: GenerationResult; parameters: Parameters }) {
  const { applied, profile, finishedEarly, lastStep } = props.result;
  const asked = props.parameters.num_inference_steps;
  const at = lastStep ? ` at step ${lastStep.step} of ${lastStep.steps}` : '';
  const early = finishedEarly ? `, finished early${at}` : '';
  if (!applied) return <Fact name="Steps">{`${asked}${early}`}</Fact>;
  const { steps, adapter, decoder, cache } = applied;
  return (
    <>
      <Fact name="Speed">{profileTitles[profile ?? 'standard']}</Fact>
      <Fact name="Steps">
        {steps}
        {steps !== asked && ` instead of ${asked}`}
        {early}
      </Fact>
      <Fact name="Guidance">{guidanceOf(applied)}</Fact>
      {adapter && (
        <Fact name="Adapter">
          {adapter.name},{' '}
          {adapter.licence.url ? (
            <a href={adapter.licence.url} target="_blank" rel="noreferrer">
              {adapter.licence.name}
            </a>
          ) : (
            adapter.licence.name
          )}
          {!adapter.licence.commercial && ': not for commercial use'}
        </Fact>
      )}
      {cache !== 'none' && <Fact name="Reused steps">By {cacheNames[cache]}</Fact>}
      <Fact name="Decoder">{decoder === 'tiny' ? 'Tiny' : 'Full'}</Fact>
    </>
  );
}

const cacheNames: Readonly<Record<Exclude<CacheKind, 'none'>, string>> = {
  magcache: 'MagCache',
  easycache: 'EasyCache',
};

function guidanceOf({ guidance_scale, guided_steps, steps }: Applied): string {
  if (guidance_scale === 1) return 'None';
  return guided_steps < steps
    ? `${guidance_scale}, until step ${guided_steps}`
    : String(guidance_scale);
}
