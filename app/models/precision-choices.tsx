import { formatBytes, type Precision, type PrecisionChoice } from '../../lib/contract';
import { Choice } from '../shared/fields';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import '../texts/en/serve';
import { MeasureButton } from './measure-button';
import type { GpuMemory } from './use-gpu-memory';
import { fitSentence, memoryRange } from './wording';

/** Which precision to fetch, with the GPU memory that each needs. */
export function PrecisionChoices(props: {
  choices: readonly PrecisionChoice[];
  chosen: Precision;
  gpu: GpuMemory;
  onChoose: (precision: Precision) => void;
  /** Asks the GPU whether it gives so many bytes, or how many. */
  onMeasure: (most: number) => void;
}) {
  const { choices, chosen, gpu, onChoose } = props;
  const memory = gpu.status === 'measured' ? gpu.bytes : null;
  const most = Math.max(...choices.map((choice) => memoryRange(choice).full));
  return (
    <fieldset className="field">
      <legend>{t('serve.precision')}</legend>
      <div className="choices stacked">
        {choices.map((choice) => (
          <Choice
            key={choice.precision}
            name="precision"
            value={choice.precision}
            checked={choice.precision === chosen}
            onChange={() => onChoose(choice.precision)}
          >
            <span>
              {manifestText(choice.name)}
              <small>
                {manifestText(choice.description)}{' '}
                {choice.download &&
                  `${t('models.aboutToFetch', { bytes: formatBytes(choice.download) })} `}
                {fitSentence(choice, memory)}
              </small>
            </span>
          </Choice>
        ))}
      </div>
      {choices.length > 1 && choices.every((choice) => memoryRange(choice).full === most) && (
        <p className="field-hint">{t('models.sameMemory')}</p>
      )}
      <div className="mt-8 text-l">
        <MeasureButton gpu={gpu} onMeasure={() => props.onMeasure(most)} />
      </div>
    </fieldset>
  );
}
