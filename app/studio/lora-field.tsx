import { type ChangeEvent, useRef } from 'react';
import { describedBy, FieldNotes } from './field';
import { type ChosenLora, maxLoras } from './form-state';
import { CloseIcon } from './icons';
import type { FieldErrors } from './validation';

/** Up to three adapters with their scales. */
export function LoraField(props: {
  loras: readonly ChosenLora[];
  errors: FieldErrors;
  onFiles: (files: readonly File[]) => void;
  onScale: (key: string, scale: string) => void;
  onRemove: (key: string) => void;
}) {
  const { loras, errors, onFiles, onScale, onRemove } = props;
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(event.target.files ?? [])]);
    event.target.value = '';
  };
  return (
    <fieldset className="field">
      <legend>LoRA</legend>
      {loras.length > 0 && (
        <ul className="loras">
          {loras.map((lora) => (
            <li key={lora.key}>
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
                  {...describedBy(lora.key, errors[lora.key])}
                  onChange={(event) => onScale(lora.key, event.target.value)}
                />
                <button
                  type="button"
                  className="icon"
                  aria-label={`Remove ${lora.name}`}
                  onClick={() => onRemove(lora.key)}
                >
                  <CloseIcon />
                </button>
              </div>
              <FieldNotes id={lora.key} error={errors[lora.key]} />
            </li>
          ))}
        </ul>
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
        disabled={loras.length >= maxLoras}
        onClick={() => input.current?.click()}
      >
        Add LoRA
      </button>
      <p className="field-hint">Up to three .safetensors files for this model, scales 0 to 4.</p>
    </fieldset>
  );
}
