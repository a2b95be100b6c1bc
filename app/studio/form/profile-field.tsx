import { adapterStrengths, samplingSwitches } from '../../../lib/contract';
import { storedModel } from '../../../lib/pipeline/profiles';
import { describedBy, FieldNotes, Switch } from '../../shared/fields';
import { linkTo } from '../../shared/link';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { profileText } from './profile-text';
import { offeredSwitches } from './sampling';

const { min, max, step } = adapterStrengths;

/** What the profile leaves open, with what will run in one line. The profile is chosen beside Generate. */
export function ProfileField() {
  const { values, model, resolved, set } = useFields();
  if (!model) return null;
  const adapter = resolved?.applied.adapter;
  const switches = offeredSwitches(model, values);
  const isOffered = switches.some(({ name }) => name === 'decoder');
  const offersLight = isOffered && storedModel(model).decoders.includes('light');
  return (
    <fieldset className="field" aria-describedby="profile-hint">
      <legend>{t('form.speed')}</legend>
      {switches.map(({ name, available }) => (
        <Switch
          key={name}
          name={t(`form.${name}`)}
          hint={
            available
              ? t(`form.${name}Hint`)
              : t.rich('form.guidanceAdapterMissing', {
                  link: linkTo('/models'),
                })
          }
          disabled={!available}
          checked={available && values[name] === samplingSwitches[name].on}
          onChange={(on) => set({ [name]: on ? samplingSwitches[name].on : undefined })}
        />
      ))}
      {offersLight && (
        <Switch
          name={t('form.light')}
          hint={t('form.lightHint')}
          checked={values.decoder === 'light'}
          onChange={(on) => set({ decoder: on ? 'light' : undefined })}
        />
      )}
      {adapter && (
        <div className="field">
          <div className="field-head row between">
            <label htmlFor="adapterStrength">
              {t('form.adapterStrength', { name: adapter.name })}
            </label>
            <output htmlFor="adapterStrength">{values.adapterStrength}</output>
          </div>
          <input
            id="adapterStrength"
            type="range"
            min={min}
            max={max}
            step={step}
            value={values.adapterStrength}
            {...describedBy('adapterStrength', undefined, true)}
            onChange={({ target }) => set({ adapterStrength: target.valueAsNumber })}
          />
          <FieldNotes id="adapterStrength" hint={t('form.adapterStrengthHint')} />
        </div>
      )}
      <p className="field-hint" id="profile-hint" aria-live="polite">
        {resolved && profileText(model, values.profile, resolved)}
        {adapter?.licence.url && (
          <>
            {' '}
            <a href={adapter.licence.url} target="_blank" rel="noreferrer">
              {t('form.licenceOf', { name: adapter.name })}
            </a>
          </>
        )}
      </p>
    </fieldset>
  );
}
