import { parameterRanges, resolveSeed, type Size, sizes } from '../../../lib/contract/parameters';
import type { Backend } from '../../../lib/contract/prediction';
import { CheckerDownload, useChecker } from '../../shared/checker';
import { BackendField, Choice, describedBy, FieldNotes, MemoryField } from '../../shared/fields';
import { DiceIcon } from '../../shared/icons';
import { type TextKey, t } from '../../texts';
import '../../texts/en/form';
import type { FormValues, NumberName } from './form-state';
import type { UnusedNote } from './sampling';

/** A number with a slider. The slider is for pointers only; keyboards and screen readers use the input. */
export function NumberField(props: {
  name: Exclude<NumberName, 'seed'>;
  value: string;
  error: string | undefined;
  unit?: string;
  hint?: string;
  /** Where the profile does not use it as it is. */
  unused?: UnusedNote | null;
  onChange: (value: string) => void;
}) {
  const { name, error, unit, onChange } = props;
  // What is invalid has to be corrected all the same.
  const unused = error ? null : props.unused;
  const fixed = typeof unused?.shown === 'string';
  const value = unused?.shown ?? props.value;
  const hint = unused?.sentence ?? props.hint;
  const { min, max, step, default: fallback } = parameterRanges[name];
  const slider = Number(value);
  return (
    <div className="field" data-unused={unused ? true : undefined}>
      <div className="field-head">
        <label htmlFor={name}>{t(`form.numbers.${name}`)}</label>
        <span className="number">
          <input
            id={name}
            type={fixed ? 'text' : 'number'}
            inputMode="decimal"
            {...(!fixed && { min, max, step })}
            value={value}
            readOnly={fixed}
            {...describedBy(name, error, hint !== undefined)}
            onChange={(event) => onChange(event.target.value)}
          />
          {unit && <span className="unit">{unit}</span>}
        </span>
      </div>
      <input
        type="range"
        aria-hidden
        tabIndex={-1}
        disabled={fixed}
        min={min}
        max={max}
        step={step}
        value={Number.isFinite(slider) && value !== '' ? slider : fallback}
        onChange={(event) => onChange(event.target.value)}
      />
      <FieldNotes id={name} error={error} hint={hint} />
    </div>
  );
}

const sizeNames: Readonly<Record<Size, TextKey>> = {
  '1280*720': 'form.landscape',
  '720*1280': 'form.portrait',
};

/** Choice of the video's size. */
export function SizeField(props: { value: Size; onChange: (size: Size) => void }) {
  return (
    <fieldset className="field">
      <legend>{t('form.size')}</legend>
      <div className="choices">
        {sizes.map((size) => (
          <Choice
            key={size}
            name="size"
            value={size}
            checked={props.value === size}
            onChange={() => props.onChange(size)}
          >
            <span className="shape" data-size={size} aria-hidden="true" />
            <span>
              {t(sizeNames[size])} <small>{size.replace('*', '×')}</small>
            </span>
          </Choice>
        ))}
      </div>
    </fieldset>
  );
}

/** The seed, with a button that sets a random one. */
export function SeedField(props: {
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}) {
  const { value, error, onChange } = props;
  const { min, max, step } = parameterRanges.seed;
  return (
    <div className="field">
      <label htmlFor="seed">{t('form.numbers.seed')}</label>
      <div className="seed-row">
        <input
          id="seed"
          type="number"
          inputMode="numeric"
          min={min}
          max={max}
          step={step}
          value={value}
          {...describedBy('seed', error, true)}
          onChange={(event) => onChange(event.target.value)}
        />
        <button
          type="button"
          className="icon"
          title={t('form.randomSeed')}
          aria-label={t('form.randomSeed')}
          onClick={() => onChange(String(resolveSeed(-1)))}
        >
          <DiceIcon />
        </button>
      </div>
      <FieldNotes id="seed" error={error} hint={t('form.seedHint')} />
    </div>
  );
}

/** Backend, memory limit and safety check. */
export function AdvancedFields(props: {
  backend: Backend;
  memoryBudget: string;
  budgetError: string | undefined;
  safetyChecker: boolean;
  model: string;
  onChange: (values: Partial<FormValues>) => void;
}) {
  const { backend, memoryBudget, budgetError, safetyChecker, model, onChange } = props;
  return (
    <>
      <BackendField backend={backend} onChange={(name) => onChange({ backend: name })} />
      <MemoryField
        value={memoryBudget}
        error={budgetError}
        onChange={(value) => onChange({ memoryBudget: value })}
      />
      <SafetyField
        value={safetyChecker}
        model={model}
        onChange={(wanted) => onChange({ safetyChecker: wanted })}
      />
    </>
  );
}

/** The switch of the safety check, and whether this browser has the checker. */
function SafetyField(props: {
  value: boolean;
  /** Id of the selected model. */
  model: string;
  onChange: (wanted: boolean) => void;
}) {
  const { value, model, onChange } = props;
  const checker = useChecker(model);
  return (
    <fieldset className="field">
      <legend>{t('form.safety')}</legend>
      <label className="check">
        <input
          type="checkbox"
          checked={value}
          aria-describedby="safety-hint"
          onChange={(event) => onChange(event.target.checked)}
        />
        {t('form.safetyCheck')}
      </label>
      <p className="field-hint" id="safety-hint">
        {t('form.safetyHint')}
        {value && checker.status === 'absent' && ` ${t('form.checkerAbsent')}`}
      </p>
      {value && <CheckerDownload checker={checker} />}
    </fieldset>
  );
}
