import type { LoraEntry } from '../../lib/contract/library';
import { describedBy, FieldNotes } from './field';
import type { ChosenLora } from './form-state';
import { CloseIcon } from './icons';

/** One chosen adapter: its scale, and its trigger words where the library knows them. */
export function LoraRow(props: {
  lora: ChosenLora;
  known: LoraEntry | undefined;
  error: string | undefined;
  onScale: (scale: string) => void;
  onRemove: () => void;
  onWord: (word: string) => void;
}) {
  const { lora, known, error, onScale, onRemove, onWord } = props;
  const words = known?.triggerWords ?? [];
  return (
    <li>
      <div className="lora-row">
        <label className="file-name" htmlFor={lora.key} title={lora.name}>
          {lora.name}
          <span className="visually-hidden">, scale</span>
        </label>
        <input
          id={lora.key}
          type="number"
          inputMode="decimal"
          min={0}
          max={4}
          step={0.05}
          value={lora.scale}
          {...describedBy(lora.key, error)}
          onChange={(event) => onScale(event.target.value)}
        />
        <button
          type="button"
          className="icon"
          aria-label={`Remove ${lora.name}`}
          onClick={onRemove}
        >
          <CloseIcon />
        </button>
      </div>
      <FieldNotes id={lora.key} error={error} />
      {words.length > 0 && (
        <p className="words">
          {words.map((word) => (
            <button
              key={word}
              type="button"
              className="word"
              title="Add to the prompt"
              aria-label={`Add ${word} to the prompt`}
              onClick={() => onWord(word)}
            >
              + {word}
            </button>
          ))}
        </p>
      )}
    </li>
  );
}
