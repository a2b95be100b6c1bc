import { groupPairs, type LibrarySnapshot } from '../../lib/contract';
import { t } from '../texts';
import '../texts/en/models';
import { type About, AddSource } from './add-source';
import { LoraCard } from './lora-card';
import { fractionOf } from './model-view';
import type { LibraryActions } from './use-library-actions';
import { amountOf } from './wording';

/** The adapters that are kept in this browser, and the ways to add one. */
export function LoraLibrary(props: {
  library: LibrarySnapshot;
  about: About;
  actions: LibraryActions;
}) {
  const { library, about, actions } = props;
  const { loras, loraDownloads } = library;
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
          <div key={name} className="total stack gap-6">
            <progress aria-label={name} value={fraction ?? undefined} max={1} />
            <p className="measure numbers">
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
      <AddSource
        id="lora-address"
        label={t('models.addressOrLink')}
        placeholder={t('models.addressExample')}
        submit={t('models.add')}
        what={t('models.filesOfLora')}
        accept=".safetensors"
        multiple
        about={about}
        onAdd={(source) =>
          actions.addLora(
            'files' in source ? { files: source.files.map(({ file }) => file) } : source,
          )
        }
      >
        {t('models.orDropLora')}
      </AddSource>
    </section>
  );
}
