import { useState } from 'react';
import { formatBytes, type LibrarySnapshot, type LoraEntry } from '../../lib/contract';
import publicLoras from '../../lib/library/public-loras.json';
import { Button } from '../shared/button';
import { Link } from '../shared/link';
import { manifestText, t } from '../texts';
import '../texts/en/models';

/**
 * LoRAs of the hub that fit the listed models, for a beginner: each is added by one click. Of a pair the list has the
 * file for high noise. Licence and size are absent where they were not seen.
 */
export function PublicLoraList(props: {
  library: LibrarySnapshot;
  busy: boolean;
  onAdd: (address: string) => void;
}) {
  const { library, busy, onAdd } = props;
  // It stays unfolded when the first one has come.
  const [open] = useState(library.loras.length === 0);
  const items = publicLoras.flatMap((lora) => {
    const model = library.models.find(({ manifest }) => manifest.id === lora.model);
    if (!model) return [];
    const { name, repository, triggerWord, bytes, licence } = lora;
    const address = `${repository}/${lora.path}`;
    const here = library.loras.find(({ source }) => source === address);
    return (
      <li key={address} className="item">
        <div className="row between">
          <h3>{name}</h3>
          {here ? (
            <UseInStudio lora={here} model={model.ready ? lora.model : null} />
          ) : (
            <Button
              className="small"
              disabled={busy}
              aria-label={t('models.addNamed', { name })}
              onClick={() => onAdd(address)}
            >
              {t('models.add')}
            </Button>
          )}
        </div>
        <p className="field-hint">
          {manifestText(lora.description)}{' '}
          {t('models.forModel', { name: model.manifest.name, word: triggerWord })}{' '}
          {bytes !== undefined && `${t('models.sizeSentence', { bytes: formatBytes(bytes) })} `}
          {licence && t.rich('models.licenceSentence', { licence: () => `${licence}` })}{' '}
          <a href={`${library.hub}/${repository}`} target="_blank" rel="noreferrer">
            {repository}
          </a>
        </p>
      </li>
    );
  });
  if (items.length === 0) return null;
  return (
    <details className="more" open={open}>
      <summary>{t('models.publicLoras')}</summary>
      <ul className="lora-list">{items}</ul>
    </details>
  );
}

/** Opens the studio with a LoRA of the library chosen. @param model to be chosen with it; null for none */
export function UseInStudio({ lora, model }: { lora: LoraEntry; model: string | null }) {
  const query = new URLSearchParams({ lora: lora.name, ...(model && { model }) });
  const label = t('models.useNamed', { name: lora.name });
  return (
    <Link className="button small" href={`/?${query}`} aria-label={label}>
      {t('models.useInStudio')}
    </Link>
  );
}
