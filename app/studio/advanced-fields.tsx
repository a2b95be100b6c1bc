import type { Backend } from '../../lib/contract/prediction';
import { BackendField } from './backend-field';
import { describedBy, FieldNotes } from './field';
import type { FormValues } from './form-state';
import { budgetRange } from './validation';

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
      <BackendField backend={backend} onChange={(name) => onChange({ backend: name })} />
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
