import type { ComponentProps, ReactNode } from 'react';
import { type Backend, backends } from '../../lib/contract';
import { t } from '../texts';
import { budgetError, budgetRange, type TypedDevice } from './device';

/** Attributes that connect an input to its hint and its error, which {@link FieldNotes} renders. */
export function describedBy(id: string, error: string | undefined, hint?: boolean) {
  const ids = [...(error ? [`${id}-error`] : []), ...(hint ? [`${id}-hint`] : [])];
  return {
    'aria-invalid': error ? (true as const) : undefined,
    'aria-describedby': ids.length > 0 ? ids.join(' ') : undefined,
  };
}

/** The error and the hint below a field. */
export function FieldNotes(props: { id: string; error?: string | undefined; hint?: ReactNode }) {
  return (
    <>
      {props.error && (
        <p className="field-error" id={`${props.id}-error`}>
          {props.error}
        </p>
      )}
      {props.hint && (
        <p className="field-hint" id={`${props.id}-hint`}>
          {props.hint}
        </p>
      )}
    </>
  );
}

/** One of the options of a field, of which one is chosen. */
export function Choice(props: {
  /** Of the field. */
  name: string;
  value?: string;
  checked: boolean;
  onChange: () => void;
  children: ReactNode;
}) {
  const { children, ...input } = props;
  return (
    <label className="choice row gap-10 relative rounded">
      <input type="radio" {...input} />
      {children}
    </label>
  );
}

/** A field of which one option is chosen. */
export function ChoiceField<Option extends string>(
  props: Pick<ComponentProps<'fieldset'>, 'disabled' | 'aria-describedby' | 'children'> & {
    name: string;
    legend: string;
    options: readonly Option[];
    chosen: Option;
    /** What an option shows. */
    show: (option: Option) => ReactNode;
    /** Whether the options stand below each other. */
    stacked?: boolean;
    onChange: (option: Option) => void;
  },
) {
  const { name, legend, options, chosen, show, stacked, onChange, children, ...field } = props;
  return (
    <fieldset className="field" {...field}>
      <legend>{legend}</legend>
      <div className={['choices', 'stack', ...(stacked ? [] : ['halves'])].join(' ')}>
        {options.map((option) => (
          <Choice
            key={option}
            name={name}
            value={option}
            checked={option === chosen}
            onChange={() => onChange(option)}
          >
            {show(option)}
          </Choice>
        ))}
      </div>
      {children}
    </fieldset>
  );
}

/** A list of which one entry is chosen. */
export function Select<Value extends string>(
  props: Omit<ComponentProps<'select'>, 'value' | 'onChange' | 'children'> & {
    value: Value;
    options: readonly (readonly [value: Value, text: string])[];
    onChange: (value: Value) => void;
  },
) {
  const { options, onChange, ...select } = props;
  return (
    <select {...select} onChange={(event) => onChange(event.target.value as Value)}>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** A choice that is made or not, with what it means. */
export function Switch(props: {
  name: string;
  hint?: ReactNode;
  disabled?: boolean;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.disabled}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>
        {props.name}
        {props.hint && <small>{props.hint}</small>}
      </span>
    </label>
  );
}

const backendNames: Readonly<Record<Backend, string>> = { webgpu: 'WebGPU', wasm: 'CPU' };

/** Choice of the device that computes the video. */
export function BackendField(props: { backend: Backend; onChange: (backend: Backend) => void }) {
  return (
    <ChoiceField
      name="backend"
      legend={t('shared.backend')}
      options={backends}
      chosen={props.backend}
      show={(name) => <span>{backendNames[name]}</span>}
      onChange={props.onChange}
    >
      <p className="field-hint">{t('shared.backendHint')}</p>
    </ChoiceField>
  );
}

/** The same in every language. */
const unit = 'GiB';

/** Upper limit of the GPU memory, in GiB. */
export function MemoryField(props: {
  device: TypedDevice;
  onChange: (changes: TypedDevice) => void;
}) {
  const { device, onChange } = props;
  const error = budgetError(device);
  return (
    <div className="field">
      <div className="field-head row between">
        <label htmlFor="memoryBudget">{t('shared.gpuMemory')}</label>
        <span className="number row gap-6">
          <input
            id="memoryBudget"
            type="number"
            inputMode="decimal"
            {...budgetRange}
            step="any"
            placeholder={t('shared.gpuMemoryAuto')}
            value={device.memoryBudget}
            {...describedBy('memoryBudget', error, true)}
            onChange={(event) => onChange({ memoryBudget: event.target.value })}
          />
          <span className="unit muted text-l">{unit}</span>
        </span>
      </div>
      <FieldNotes id="memoryBudget" error={error} hint={t('shared.gpuMemoryHint')} />
    </div>
  );
}
