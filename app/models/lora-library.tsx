import { type FormEvent, useState } from 'react';
import type { ErrorRecord } from '../../lib/contract/errors';
import type { LibrarySnapshot } from '../../lib/contract/library';
import { groupPairs } from '../../lib/contract/lora-files';
import { t } from '../texts';
import '../texts/en/models';
import { FilePicker } from './file-picker';
import { LoraCard } from './lora-card';
import { fractionOf } from './model-view';
import { Outcome } from './outcome';
import type { LibraryActions } from './use-library-actions';
import { amountOf } from './wording';

/** The adapters that are kept in this browser, and the ways to add one. */
export function LoraLibrary(props: {
  library: LibrarySnapshot;
  doing: string | undefined;
  done: string | undefined;
  problem: ErrorRecord | undefined;
  actions: LibraryActions;
}) {
  const { library, doing, done, problem, actions } = props;
  const { loras, loraDownloads } = library;
  const [address, setAddress] = useState('');
  const add = (event: FormEvent) => {
    event.preventDefault();
    actions.addLora({ address: address.trim() });
  };
  return (
    <section className="panel loras-panel" id="loras" aria-labelledby="loras-title">
      <h2 id="loras-title">{t('models.loraLibrary')}</h2>
      <p className="field-hint">{t('models.loraHint')}</p>
      {loras.length > 0 && (
        <ul className="lora-list">
          {groupPairs(loras, ({ name }) => name).map((files) => (
            <LoraCard
              key={files[0].name}
              files={files}
              onDelete={() => actions.askRemoval({ kind: 'lora', id: files[0].name })}
            />
          ))}
        </ul>
      )}
      {loraDownloads.map(({ name, bytesDone, bytesTotal }) => {
        const fraction = fractionOf(bytesDone, bytesTotal);
        return (
          <div key={name} className="total">
            <progress aria-label={name} value={fraction ?? undefined} max={1} />
            <p className="measure">
              {name} · {amountOf(bytesDone, bytesTotal)}
            </p>
            <button
              type="button"
              aria-label={t('models.cancelName', { name })}
              onClick={() => actions.cancelLora(name)}
            >
              {t('models.cancel')}
            </button>
          </div>
        );
      })}
      <form className="field" onSubmit={add}>
        <label htmlFor="lora-address">{t('models.addressOrLink')}</label>
        <div className="row">
          <input
            id="lora-address"
            type="text"
            inputMode="url"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            placeholder={t('models.addressExample')}
            required
            value={address}
            onChange={(event) => setAddress(event.target.value)}
          />
          <button type="submit" disabled={doing !== undefined}>
            {t('models.add')}
          </button>
        </div>
      </form>
      <FilePicker
        what={t('models.filesOfLora')}
        accept=".safetensors"
        multiple
        disabled={doing !== undefined}
        onFiles={(files) => actions.addLora({ files: files.map(({ file }) => file) })}
      >
        {t('models.orDropLora')}
      </FilePicker>
      <Outcome doing={doing} done={done} problem={problem} />
    </section>
  );
}
