import { type Backend, backends } from '../../lib/contract/prediction';
import { describedBy, FieldNotes } from './field';
import type { FormValues } from './form-state';
import { budgetRange } from './validation';

const backendNames: Readonly<Record<Backend, string>> = {
  webgpu: 'WebGPU',
  wasm: 'CPU',
};

/** Where the model runs, and how much memory it may take there. */
export function AdvancedFields(props: {
  backend: Backend;
  memoryBudget: string;
  budgetError: string | undefined;
  onChange: (values: Partial<FormValues>) => void;
}) {
  const { backend, memoryBudget, budgetError, onChange } = props;
  return (
    <>
      <fieldset className="field">
        <legend>Backend</legend>
        <div className="choices">
          {backends.map((name) => (
            <label key={name} className="choice">
              <input
                type="radio"
                name="backend"
                value={name}
                checked={backend === name}
                onChange={() => onChange({ backend: name })}
              />
              <span>{backendNames[name]}</span>
            </label>
          ))}
        </div>
        <p className="field-hint">The CPU works everywhere; a real GPU is far faster.</p>
      </fieldset>
      <div className="field">
        <div className="field-head">
          <label htmlFor="memoryBudget">GPU memory</label>
          <span className="number">
            <input
              id="memoryBudget"
              type="number"
              inputMode="decimal"
              {...budgetRange}
              step="any"
              placeholder="auto"
              value={memoryBudget}
              {...describedBy('memoryBudget', budgetError, true)}
              onChange={(event) => onChange({ memoryBudget: event.target.value })}
            />
            <span className="unit">GiB</span>
          </span>
        </div>
        <FieldNotes
          id="memoryBudget"
          error={budgetError}
          hint="The most to use. Empty: measured before each video. With less, parts of the model are read from disk in every step; the video stays the same."
        />
      </div>
    </>
  );
}
