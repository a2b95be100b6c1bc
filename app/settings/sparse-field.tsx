import { sparseSettings } from '../../lib/contract/kernel-setting';
import { changeDevice, useDevice } from '../shared/device';
import { Choice } from '../shared/fields';
import { t } from '../texts';
import '../texts/en/settings';

/** The experiment of sparse attention. */
export function SparseField() {
  const { sparse } = useDevice();
  return (
    <fieldset className="field" aria-describedby="sparse-hint">
      <legend>{t('settings.sparse')}</legend>
      <div className="choices">
        {(['off', ...sparseSettings] as const).map((name) => (
          <Choice
            key={name}
            name="sparse"
            value={name}
            checked={sparse === name}
            onChange={() => changeDevice({ sparse: name })}
          >
            <span>{t(`shared.sparse.${name}`)}</span>
          </Choice>
        ))}
      </div>
      <p className="field-hint" id="sparse-hint">
        {t(`settings.sparseHint.${sparse}`)}
      </p>
    </fieldset>
  );
}
