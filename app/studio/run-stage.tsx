import { phases } from '../../lib/contract/progress';
import type { RunProgress } from '../../lib/predictions/run-state';
import { LatentPreview } from './latent-preview';
import { measureOf, phaseNames } from './measure';
import { phaseFraction } from './percent';

/** Where a run is: its preview, the phases, the bar of this phase, and what that counts. */
export function RunStage({ progress }: { progress: RunProgress }) {
  const { phase, clip, clips, preview } = progress;
  const reached = phase === null ? -1 : phases.indexOf(phase);
  const fraction = phaseFraction(progress);
  return (
    <>
      {preview && <LatentPreview preview={preview} />}
      <ol className="phases">
        {phases.map((name, index) => (
          <li
            key={name}
            data-state={index < reached ? 'done' : index === reached ? 'now' : 'later'}
            aria-current={index === reached ? 'step' : undefined}
          >
            {phaseNames[name]}
          </li>
        ))}
      </ol>
      <progress
        aria-label={phase ? phaseNames[phase] : 'Starting'}
        {...(fraction !== null && { value: fraction, max: 1 })}
      />
      <p className="measure">
        {measureOf(progress)}
        {clips > 1 && ` · clip ${clip + 1} of ${clips}`}
      </p>
    </>
  );
}
