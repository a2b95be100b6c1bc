import { parameterRanges, resolveSeed } from '../../lib/contract/request';
import { describedBy, FieldNotes } from './field';
import { DiceIcon } from './icons';

/** The seed, with a die that throws one. */
export function SeedField(props: {
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}) {
  const { value, error, onChange } = props;
  const { min, max, step } = parameterRanges.seed;
  return (
    <div className="field">
      <label htmlFor="seed">Seed</label>
      <div className="seed-row">
        <input
          id="seed"
          type="number"
          inputMode="numeric"
          {...{ min, max, step, value }}
          {...describedBy('seed', error, true)}
          onChange={(event) => onChange(event.target.value)}
        />
        <button
          type="button"
          className="icon"
          title="Throw a seed"
          aria-label="Throw a seed"
          onClick={() => onChange(String(resolveSeed(-1)))}
        >
          <DiceIcon />
        </button>
      </div>
      <FieldNotes
        id="seed"
        error={error}
        hint="−1 draws a new seed for every video. The same seed and settings give the same video."
      />
    </div>
  );
}
