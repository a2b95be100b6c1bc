import { formatBytes, groupPairs, type LibrarySnapshot, type LoraEntry } from '../../lib/contract';
import { Button } from '../shared/button';
import { t } from '../texts';
import '../texts/en/models';
import { useState } from 'react';
import { type About, AddSource } from './add-source';
import { fractionOf } from './model-view';
import type { LibraryActions } from './use-library-actions';
import { amountOf } from './wording';
import '../texts/en/settings';
import { Licence } from './licence';
import { PublicLoraList, UseInStudio } from './public-lora-list';

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
      <PublicLoraList
        library={library}
        busy={about.doing !== undefined}
        onAdd={(address) => actions.addLora({ address })}
      />
      {loraDownloads.map(({ name, bytesDone, bytesTotal }) => {
        const fraction = fractionOf(bytesDone, bytesTotal);
        return (
          <div key={name} className="total stack gap-6">
            <progress aria-label={name} value={fraction ?? undefined} max={1} />
            <p className="measure numbers">
              {name} · {amountOf(bytesDone, bytesTotal)}
            </p>
            <Button
              aria-label={t('models.cancelName', { name })}
              onClick={() => actions.cancelLora(name)}
            >
              {t('models.cancel')}
            </Button>
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

/** One adapter of the library, or the two files of a pair: what it is for and how to call it. */
function LoraCard(props: { files: readonly [LoraEntry, LoraEntry?]; onDelete: () => void }) {
  const { files, onDelete } = props;
  const [{ rank, base, noise, source, licence }, other] = files;
  const all = files.filter((file) => file !== undefined);
  const name = all.map((file) => file.name).join(' + ');
  const triggerWords = [...new Set(all.flatMap((file) => file.triggerWords))];
  const model = base === 'unknown' ? t('models.unknownModel') : base;
  const [copied, setCopied] = useState<string | null>(null);
  const copy = (word: string) => {
    navigator.clipboard.writeText(word).then(
      () => setCopied(word),
      () => setCopied(null),
    );
  };
  return (
    <li className="item">
      <div className="row between">
        <h3 className="file-name min-0 clip" title={source}>
          {name}
        </h3>
        <Button
          className="danger small"
          aria-label={t('settings.deleteNamed', { name })}
          onClick={onDelete}
        >
          {t('models.delete')}
        </Button>
      </div>
      <p className="field-hint">
        {t.rich('models.loraFacts', {
          rank,
          base: noise
            ? t('models.forNoise', { base: model, noise: other ? 'both' : noise })
            : model,
          bytes: formatBytes(all.reduce((sum, { bytes }) => sum + bytes, 0)),
          licence: () => <Licence {...licence} />,
        })}
      </p>
      {triggerWords.length > 0 && (
        <p className="words">
          <span className="field-hint">{t('models.triggerWords')}</span>
          {triggerWords.map((word) => (
            <Button
              key={word}
              className="word"
              title={t('models.copy')}
              aria-label={t('models.copyWord', { word })}
              onClick={() => copy(word)}
            >
              {copied === word ? `${word} ✓` : word}
            </Button>
          ))}
          <span className="visually-hidden" role="status">
            {copied && t('models.wordCopied', { word: copied })}
          </span>
        </p>
      )}
      <p className="mt-8">
        <UseInStudio lora={files[0]} model={null} />
      </p>
    </li>
  );
}
