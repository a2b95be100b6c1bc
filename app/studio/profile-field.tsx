import { profileTitles } from '../../lib/contract/format';
import type { ModelEntry } from '../../lib/contract/library';
import type { ProfileName } from '../../lib/contract/profile';
import type { ResolvedSampling } from '../../lib/pipeline/profiles';
import { Choice } from '../shared/fields';
import { profileChoices } from '../shared/use-models';
import type { FormValues } from './form-state';
import type { Choices } from './sampling';

const texts: Readonly<Record<ProfileName, string>> = {
  standard: 'As many steps as you set: the best quality.',
  'ultra-fast': 'A fraction of the work; motion, colours and fine detail may suffer.',
};

/** Choice of the model's profile and of what it leaves open, with what will run in one line. */
export function ProfileField(props: {
  values: Choices;
  model: ModelEntry | undefined;
  /** What the model makes of the form; null where it is not known yet. */
  resolved: ResolvedSampling | null;
  onChange: (values: Partial<FormValues>) => void;
}) {
  const { values, model, resolved, onChange } = props;
  if (!model) return null;
  const choices = profileChoices(model);
  const { decoder } = model.manifest.profiles[values.profile];
  const adapter = resolved?.applied.adapter;
  return (
    <fieldset className="field" aria-describedby="profile-hint">
      <legend>Speed</legend>
      {choices.length > 1 && (
        <div className="choices">
          {choices.map((name) => (
            <Choice
              key={name}
              name="profile"
              value={name}
              checked={values.profile === name}
              onChange={() => onChange({ profile: name })}
            >
              <span>
                {profileTitles[name]}
                <small>{texts[name]}</small>
              </span>
            </Choice>
          ))}
        </div>
      )}
      {decoder === 'tiny' && (
        <Switch
          name="Full decode"
          hint="The model’s own decoder instead of the tiny one: slower, with finer detail."
          checked={values.fullDecode}
          onChange={(fullDecode) => onChange({ fullDecode })}
        />
      )}
      {values.profile === 'standard' && (
        <Switch
          name="Faster, nearly the same"
          hint="Some steps reuse what an earlier one computed: at 30 steps about four tenths less work. Details change a little."
          checked={values.cache}
          onChange={(cache) => onChange({ cache })}
        />
      )}
      <p className="field-hint" id="profile-hint" aria-live="polite">
        {resolved?.sentence}
        {adapter?.licence.url && (
          <>
            {' '}
            <a href={adapter.licence.url} target="_blank" rel="noreferrer">
              Licence of {adapter.name}
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
