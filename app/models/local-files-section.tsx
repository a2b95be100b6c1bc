import { useId, useState } from 'react';
import type { LocalFile, ModelEntry, Precision } from '../../lib/contract';
import { manifestText, t } from '../texts';
import '../texts/en/models';
import { FilePicker } from './file-picker';

/** For those who have the files already: they serve instead of the hub. */
export function LocalFiles(props: {
  entry: ModelEntry;
  disabled: boolean;
  onFiles: (entry: ModelEntry, precision: Precision, files: readonly LocalFile[]) => void;
}) {
  const { entry, disabled, onFiles } = props;
  const { manifest } = entry;
  const [chosen, setChosen] = useState<Precision | null>(null);
  const precision = chosen ?? entry.precision ?? manifest.precision;
  const id = useId();
  return (
    <details className="more">
      <summary id={`${manifest.id}-local`}>{t('models.useLocal')}</summary>
      {manifest.choices.length > 1 && (
        <div className="field">
          <label htmlFor={id}>{t('models.keepAs')}</label>
          <select
            id={id}
            value={precision}
            onChange={(event) =>
              setChosen(
                manifest.choices.find((choice) => choice.precision === event.target.value)
                  ?.precision ?? null,
              )
            }
          >
            {manifest.choices.map((choice) => (
              <option key={choice.precision} value={choice.precision}>
                {manifestText(choice.name)}
              </option>
            ))}
          </select>
        </div>
      )}
      <FilePicker
        what={t('models.filesOf', { name: manifest.name })}
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        disabled={disabled}
        onFiles={(files) => onFiles(entry, precision, files)}
      >
        {t('models.localHint')}
      </FilePicker>
    </details>
  );
}
