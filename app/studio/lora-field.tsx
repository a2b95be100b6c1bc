import Link from 'next/link';
import { type ChangeEvent, useRef } from 'react';
import type { LoraEntry } from '../../lib/contract/library';
import { describedBy, FieldNotes } from '../shared/fields';
import { CloseIcon } from '../shared/icons';
import { type ChosenLora, maxLoras } from './form-state';
import type { FieldErrors } from './validation';

/** Up to three LoRAs with their scales, from the library or from files. */
export function LoraField(props: {
  loras: readonly ChosenLora[];
  library: readonly LoraEntry[];
  errors: FieldErrors;
  onFiles: (files: readonly File[]) => void;
  onPick: (name: string) => void;
  onScale: (key: string, scale: string) => void;
  onRemove: (key: string) => void;
  onWord: (word: string) => void;
}) {
  const { loras, library, errors, onFiles, onPick, onScale, onRemove, onWord } = props;
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(event.target.files ?? [])]);
    event.target.value = '';
  };
  const full = loras.length >= maxLoras;
  const chosen = loras.filter(({ file }) => file === null).map(({ name }) => name);
  const offered = library.filter(({ name }) => !chosen.includes(name));
  return (
    <fieldset className="field">
      <legend>LoRA</legend>
      {loras.length > 0 && (
        <ul className="loras">
          {loras.map((lora) => (
            <LoraRow
              key={lora.key}
              lora={lora}
              entry={library.find(({ name }) => lora.file === null && name === lora.name)}
              error={errors[lora.key]}
              onScale={(scale) => onScale(lora.key, scale)}
              onRemove={() => onRemove(lora.key)}
              onWord={onWord}
            />
          ))}
        </ul>
      )}
      {offered.length > 0 && (
        <p className="words">
          {offered.map(({ name }) => (
            <button
              key={name}
              type="button"
              className="word"
              disabled={full}
              aria-label={`Use ${name} of the library`}
              onClick={() => onPick(name)}
            >
              + {name.replace(/\.safetensors$/, '')}
            </button>
          ))}
        </p>
      )}
      <input
        ref={input}
        className="visually-hidden"
        type="file"
        multiple
        accept=".safetensors"
        aria-label="LoRA files"
        tabIndex={-1}
        onChange={choose}
      />
      <button
        type="button"
        className="quiet"
        disabled={full}
        onClick={() => input.current?.click()}
      >
        Add LoRA
      </button>
      <p className="field-hint">
        Up to three .safetensors files for this model, scales 0 to 4. Keep those that you use often
        in the{' '}
        <Link href="/models#loras" prefetch={false}>
          LoRA library
        </Link>
        .
      </p>
    </fieldset>
  );
}

/** One selected LoRA: its scale, and its trigger words if it is from the library. */
function LoraRow(props: {
  lora: ChosenLora;
  entry: LoraEntry | undefined;
  error: string | undefined;
  onScale: (scale: string) => void;
  onRemove: () => void;
  onWord: (word: string) => void;
}) {
  const { lora, entry, error, onScale, onRemove, onWord } = props;
  const words = entry?.triggerWords ?? [];
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
