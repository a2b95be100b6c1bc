import { parameterRanges } from '../../lib/contract/request';
import { describedBy, FieldNotes } from './field';
import type { NumberName } from './form-state';
import { labels } from './validation';

/** A number with its range as a slider; the slider is for the pointer, the box for everyone. */
export function NumberField(props: {
  name: Exclude<NumberName, 'seed'>;
  value: string;
  error: string | undefined;
  unit?: string;
  hint?: string;
  onChange: (value: string) => void;
}) {
  const { name, value, error, unit, hint, onChange } = props;
  const { min, max, step, default: fallback } = parameterRanges[name];
  const slider = Number(value);
  return (
    <div className="field">
      <div className="field-head">
        <label htmlFor={name}>{labels[name]}</label>
        <span className="number">
          <input
            id={name}
            type="number"
            inputMode="decimal"
            {...{ min, max, step, value }}
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
        {...{ min, max, step }}
        value={Number.isFinite(slider) && value !== '' ? slider : fallback}
        onChange={(event) => onChange(event.target.value)}
      />
      <FieldNotes id={name} error={error} hint={hint} />
    </div>
  );
}
