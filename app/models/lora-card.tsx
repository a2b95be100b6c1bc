import { useState } from 'react';
import { formatBytes } from '../../lib/contract/format';
import type { LoraEntry } from '../../lib/contract/library';
import { Licence } from './licence';

/** One adapter of the library: what it is for and how to call it. */
export function LoraCard({ lora, onDelete }: { lora: LoraEntry; onDelete: () => void }) {
  const { name, rank, base, bytes, triggerWords, source, licence } = lora;
  const [copied, setCopied] = useState<string | null>(null);
  const copy = (word: string) => {
    navigator.clipboard.writeText(word).then(
      () => setCopied(word),
      () => setCopied(null),
    );
  };
  return (
    <li className="lora">
      <div className="part-head">
        <h3 className="file-name" title={source}>
          {name}
        </h3>
        <button
          type="button"
          className="danger small"
          aria-label={`Delete ${name}`}
          onClick={onDelete}
        >
          Delete
        </button>
      </div>
      <p className="field-hint">
        {rank > 0 ? `Rank ${rank}` : 'No low-rank layers'} · for{' '}
        {base === 'unknown' ? 'an unknown model' : base} · {formatBytes(bytes)} · Licence:{' '}
        <Licence {...licence} />
      </p>
      {triggerWords.length > 0 && (
        <p className="words">
          <span className="field-hint">Trigger words:</span>
          {triggerWords.map((word) => (
            <button
              key={word}
              type="button"
              className="word"
              title="Copy"
              aria-label={`Copy ${word}`}
              onClick={() => copy(word)}
            >
              {copied === word ? `${word} ✓` : word}
            </button>
          ))}
          <span className="visually-hidden" role="status">
            {copied && `${copied} copied`}
          </span>
        </p>
      )}
    </li>
  );
}
