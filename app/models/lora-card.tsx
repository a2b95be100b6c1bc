import { useState } from 'react';
import { formatBytes, type LoraEntry } from '../../lib/contract';
import { t } from '../texts';
import '../texts/en/models';
import '../texts/en/settings';
import { Licence } from './licence';

/** One adapter of the library, or the two files of a pair: what it is for and how to call it. */
export function LoraCard(props: { files: readonly [LoraEntry, LoraEntry?]; onDelete: () => void }) {
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
        <button
          type="button"
          className="danger small"
          aria-label={t('settings.deleteNamed', { name })}
          onClick={onDelete}
        >
          {t('models.delete')}
        </button>
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
            <button
              key={word}
              type="button"
              className="word"
              title={t('models.copy')}
              aria-label={t('models.copyWord', { word })}
              onClick={() => copy(word)}
            >
              {copied === word ? `${word} ✓` : word}
            </button>
          ))}
          <span className="visually-hidden" role="status">
            {copied && t('models.wordCopied', { word: copied })}
          </span>
        </p>
      )}
    </li>
  );
}
