import { type FormEvent, useState } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';
import type { LocalFile } from '../../lib/contract/library';
import { FilePicker } from './file-picker';
import { Outcome } from './outcome';

/** Another model: by its address on the hub, or from this computer. */
export function AddModel(props: {
  doing: string | undefined;
  done: string | undefined;
  problem: ErrorRecord | undefined;
  onAdd: (source: { address: string } | { files: readonly LocalFile[] }) => void;
}) {
  const [address, setAddress] = useState('');
  const busy = props.doing !== undefined;
  const add = (event: FormEvent) => {
    event.preventDefault();
    props.onAdd({ address: address.trim() });
  };
  return (
    <section className="panel" aria-labelledby="add-model-title">
      <h2 id="add-model-title">Add a model</h2>
      <p className="field-hint">
        Any model of the Wan2.2-TI2V architecture, as a diffusers folder, safetensors or GGUF. Every
        tensor is checked before anything large is fetched.
      </p>
      <form className="field" onSubmit={add}>
        <label htmlFor="model-address">Address on the hub</label>
        <div className="row">
          <input
            id="model-address"
            type="text"
            inputMode="url"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder="owner/name"
            required
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
          <button type="submit" disabled={busy}>
            Look it up
          </button>
        </div>
      </form>
      <FilePicker
        what="of the model"
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        disabled={busy}
        onFiles={(files) => props.onAdd({ files })}
      >
        Or from this computer: drop the model's folder or its files here.
      </FilePicker>
      <Outcome doing={props.doing} done={props.done} problem={props.problem} />
    </section>
  );
}
