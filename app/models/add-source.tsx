import { useState } from 'react';
import type { ErrorRecord, LocalFile } from '../../lib/contract';
import { FilePicker, type FilePickerProps } from './file-picker';
import { Outcome } from './outcome';
import type { Said } from './page-state';

/** What the page knows about one subject. */
export interface About {
  readonly doing: string | undefined;
  readonly done: Said | undefined;
  readonly problem: ErrorRecord | undefined;
}

/** Adds something by its address on the hub, or from this computer. */
export function AddSource(
  props: Omit<FilePickerProps, 'disabled' | 'onFiles'> & {
    /** Of the field for the address. */
    id: string;
    label: string;
    placeholder: string;
    submit: string;
    about: About;
    onAdd: (source: { address: string } | { files: LocalFile[] }) => void;
  },
) {
  const { id, label, placeholder, submit, about, onAdd, ...picker } = props;
  const [address, setAddress] = useState('');
  const busy = about.doing !== undefined;
  return (
    <>
      <form
        className="field"
        onSubmit={(event) => {
          event.preventDefault();
          onAdd({ address: address.trim() });
        }}
      >
        <label htmlFor={id}>{label}</label>
        <div className="input-row">
          <input
            id={id}
            type="text"
            inputMode="url"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder={placeholder}
            required
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
          <button type="submit" disabled={busy}>
            {submit}
          </button>
        </div>
      </form>
      <FilePicker {...picker} disabled={busy} onFiles={(files) => onAdd({ files })} />
      <Outcome {...about} />
    </>
  );
}
