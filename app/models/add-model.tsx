import { type FormEvent, useState } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';
import type { LocalFile } from '../../lib/contract/library';
import { t } from '../texts';
import '../texts/en/models';
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
      <h2 id="add-model-title">{t('models.addModel')}</h2>
      <p className="field-hint">{t('models.addModelHint')}</p>
      <form className="field" onSubmit={add}>
        <label htmlFor="model-address">{t('models.hubAddressOf')}</label>
        <div className="row">
          <input
            id="model-address"
            type="text"
            inputMode="url"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder={t('models.repositoryExample')}
            required
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
          <button type="submit" disabled={busy}>
            {t('models.lookUp')}
          </button>
        </div>
      </form>
      <FilePicker
        what={t('models.filesOfModel')}
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        disabled={busy}
        onFiles={(files) => props.onAdd({ files })}
      >
        {t('models.orDropModel')}
      </FilePicker>
      <Outcome doing={props.doing} done={props.done} problem={props.problem} />
    </section>
  );
}
