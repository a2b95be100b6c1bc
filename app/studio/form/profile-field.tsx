import { t } from '../../texts';
import '../../texts/en/form';
import type { FormFields } from './parameter-fields';
import { profileText } from './profile-text';

/** What the profile leaves open, with what will run in one line. The profile is chosen beside Generate. */
export function ProfileField({ fields }: { fields: FormFields }) {
  const { values, model, resolved, set } = fields;
  if (!model) return null;
  const { decoder } = model.manifest.profiles[values.profile];
  const adapter = resolved?.applied.adapter;
  return (
    <fieldset className="field" aria-describedby="profile-hint">
      <legend>{t('form.speed')}</legend>
      {decoder === 'tiny' && (
        <Switch
          name={t('form.fullDecode')}
          hint={t('form.fullDecodeHint')}
          checked={values.fullDecode}
          onChange={(fullDecode) => set({ fullDecode })}
        />
      )}
      {values.profile === 'standard' && (
        <Switch
          name={t('form.cache')}
          hint={t('form.cacheHint')}
          checked={values.cache}
          onChange={(cache) => set({ cache })}
        />
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

function Switch(props: {
  name: string;
  hint: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>
        {props.name}
        <small>{props.hint}</small>
      </span>
    </label>
  );
}
