import { t } from '../texts';
import '../texts/en/models';
import { type About, AddSource } from './add-source';
import type { LibraryActions } from './use-library-actions';

/** Another model: by its address on the hub, or from this computer. */
export function AddModel({ about, actions }: { about: About; actions: LibraryActions }) {
  return (
    <section className="panel" aria-labelledby="add-model-title">
      <h2 id="add-model-title">{t('models.addModel')}</h2>
      <p className="field-hint">{t('models.addModelHint')}</p>
      <AddSource
        id="model-address"
        label={t('models.hubAddressOf')}
        placeholder={t('models.repositoryExample')}
        submit={t('models.lookUp')}
        what={t('models.filesOfModel')}
        accept=".gguf,.safetensors,.json"
        folders
        multiple
        about={about}
        onAdd={actions.addModel}
      >
        {t('models.orDropModel')}
      </AddSource>
    </section>
  );
}
