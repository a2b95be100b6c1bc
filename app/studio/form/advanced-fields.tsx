import { parameterRanges, resolveSeed } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { CheckerDownload, useChecker } from '../../shared/checker';
import { BackendField, describedBy, FieldNotes, MemoryField, Switch } from '../../shared/fields';
import { DiceIcon } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { LoraField } from './lora-field';
import { NegativePromptField } from './negative-prompt-field';
import { NumberField } from './parameter-fields';
import { PresetField } from './preset-field';
import { ProfileField } from './profile-field';
import { mayGiveNoise } from './sampling';

/** What few videos need, below a fold: how it is computed, where, LoRAs, presets and the safety check. */
export function AdvancedFields() {
  const { values, model, resolved, set } = useFields();
  return (
    <>
      <NumberField name="num_inference_steps" />
      <ProfileField />
      <NegativePromptField />
      <div className="field-pair stack gap-20 halves">
        <NumberField name="guidance_scale" hint={t('form.guidanceHint')} />
        <NumberField
          name="flow_shift"
          hint={t(mayGiveNoise(model, resolved) ? 'form.noisyShift' : 'form.flowShiftHint')}
        />
      </div>
      <SeedField />
      <LoraField />
      <PresetField />
      <BackendField backend={values.backend} onChange={(backend) => set({ backend })} />
      <MemoryField device={values} onChange={set} />
      <SafetyField />
    </>
  );
}

/** The seed, with a button that sets a random one. */
function SeedField() {
  const { values, errors, set } = useFields();
  const error = errors.seed;
  const { min, max, step } = parameterRanges.seed;
  return (
    <div className="field">
      <label htmlFor="seed">{t('form.numbers.seed')}</label>
      <div className="row">
        <input
          id="seed"
          type="number"
          inputMode="numeric"
          min={min}
          max={max}
          step={step}
          value={values.seed}
          {...describedBy('seed', error, true)}
          onChange={(event) => set({ seed: event.target.value })}
        />
        <Button
          className="icon"
          title={t('form.randomSeed')}
          aria-label={t('form.randomSeed')}
          onClick={() => set({ seed: String(resolveSeed(-1)) })}
        >
          <DiceIcon />
        </Button>
      </div>
      <FieldNotes id="seed" error={error} hint={t('form.seedHint')} />
    </div>
  );
}

/** The switch of the safety check, and whether this browser has the checker. */
function SafetyField() {
  const { values, model, set } = useFields();
  const checker = useChecker(model?.manifest.id ?? '');
  const isEnabled = values.safetyChecker;
  return (
    <fieldset className="field">
      <legend>{t('form.safety')}</legend>
      <Switch
        name={t('form.safetyCheck')}
        hint={
          t('form.safetyHint') +
          (isEnabled && checker.status === 'absent' ? ` ${t('form.checkerAbsent')}` : '')
        }
        checked={isEnabled}
        onChange={(safetyChecker) => set({ safetyChecker })}
      />
      {isEnabled && <CheckerDownload checker={checker} />}
    </fieldset>
  );
}
