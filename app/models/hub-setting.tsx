import { type FormEvent, useState } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';
import { describedBy, FieldNotes } from '../shared/fields';
import { Outcome } from './outcome';
import { shownAddress, type TypedAddress } from './page-state';

/** Where model files come from: the hub itself, or a mirror of it. */
export function HubSetting(props: {
  hub: string;
  doing: string | undefined;
  done: string | undefined;
  problem: ErrorRecord | undefined;
  onSave: (base: string) => void;
}) {
  const { hub, problem } = props;
  const [typed, setTyped] = useState<TypedAddress | null>(null);
  const shown = shownAddress(typed, hub);
  const save = (event: FormEvent) => {
    event.preventDefault();
    props.onSave(shown.trim());
  };
  return (
    <details className="panel more">
      <summary>Hub address</summary>
      <form className="field" onSubmit={save}>
        <label htmlFor="hub">Base address of the hub</label>
        <div className="row">
          <input
            id="hub"
            type="url"
            required
            spellCheck={false}
            value={shown}
            {...describedBy('hub', undefined, true)}
            onChange={(event) => setTyped({ text: event.target.value, hub })}
          />
          <button type="submit" disabled={props.doing !== undefined}>
            Save
          </button>
        </div>
        <FieldNotes
          id="hub"
          hint="Files are fetched from here. A mirror must answer as huggingface.co does."
        />
      </form>
      <Outcome doing={props.doing} done={props.done} problem={problem} />
    </details>
  );
}
