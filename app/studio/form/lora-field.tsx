import Link from 'next/link';
import { type ChangeEvent, useRef } from 'react';
import type { LoraEntry } from '../../../lib/contract/library';
import { describedBy, FieldNotes } from '../../shared/fields';
import { ArrowIcon, CloseIcon } from '../../shared/icons';
import { errorTexts, t } from '../../texts';
import '../../texts/en/form';
import { type ChosenLora, maxLoras } from './form-state';
import './lora.css';
import type { LoraCheck } from './use-loras';
import type { FieldErrors } from './validation';

/** Up to three LoRAs with their scales, from the library or from files. */
export function LoraField(props: {
  loras: readonly ChosenLora[];
  library: readonly LoraEntry[];
  /** The name of the example of a LoRA for the model; null where there is none. */
  example: string | null;
  errors: FieldErrors;
  /** By the keys of the LoRAs. */
  checks: Readonly<Record<string, LoraCheck>>;
  onFiles: (files: readonly File[]) => void;
  onPick: (name: string) => void;
  onExample: () => void;
  onScale: (key: string, scale: string) => void;
  onMove: (key: string, by: 1 | -1) => void;
  onRemove: (key: string) => void;
  onWord: (word: string) => void;
}) {
  const { loras, library, example, errors, checks } = props;
  const { onFiles, onPick, onExample, onScale, onMove, onRemove, onWord } = props;
  const input = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    onFiles([...(event.target.files ?? [])]);
    event.target.value = '';
  };
  const full = loras.length >= maxLoras;
  const chosen = loras.filter(({ file }) => file === null).map(({ name }) => name);
  const offered = library
    .filter(({ name }) => !chosen.includes(name))
    .map(({ name }) => ({ name, label: t('form.useLora', { name }), use: () => onPick(name) }));
  if (example !== null && !loras.some(({ name }) => name === example)) {
    const label = t('form.useExampleLora', { name: example });
    offered.push({ name: example, label, use: onExample });
  }
  return (
    <fieldset className="field">
      <legend>{t('form.lora')}</legend>
      {loras.length > 0 && (
        <ul className="loras">
          {loras.map((lora, index) => (
            <LoraRow
              key={lora.key}
              lora={lora}
              place={{ first: index === 0, last: index === loras.length - 1 }}
              words={checks[lora.key]?.triggerWords ?? []}
              error={errors[lora.key] ?? misfitText(checks[lora.key])}
              onMove={(by) => onMove(lora.key, by)}
              onScale={(scale) => onScale(lora.key, scale)}
              onRemove={() => onRemove(lora.key)}
              onWord={onWord}
            />
          ))}
        </ul>
      )}
      {offered.length > 0 && (
        <p className="words">
          {offered.map(({ name, label, use }) => (
            <button
              key={label}
              type="button"
              className="word"
              disabled={full}
              aria-label={label}
              onClick={use}
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
        aria-label={t('form.loraFiles')}
        tabIndex={-1}
        onChange={choose}
      />
      <button
        type="button"
        className="quiet"
        disabled={full}
        onClick={() => input.current?.click()}
      >
        {t('form.addLora')}
      </button>
      <p className="field-hint">
        {t.rich('form.loraHint', {
          library: (name) => (
            <Link href="/models#loras" prefetch={false}>
              {name}
            </Link>
          ),
        })}
      </p>
    </fieldset>
  );
}

/** Why a LoRA does not fit the model; undefined where it does. */
function misfitText(check: LoraCheck | undefined): string | undefined {
  return check?.misfit ? errorTexts(check.misfit).message : undefined;
}

/** One selected LoRA: its scale, its place among the others, and its trigger words. */
function LoraRow(props: {
  lora: ChosenLora;
  /** Its trigger words. */
  words: readonly string[];
  place: { readonly first: boolean; readonly last: boolean };
  error: string | undefined;
  onScale: (scale: string) => void;
  onMove: (by: 1 | -1) => void;
  onRemove: () => void;
  onWord: (word: string) => void;
}) {
  const { lora, words, place, error, onScale, onMove, onRemove, onWord } = props;
  return (
    <li>
      <div className="lora-row">
        <label className="file-name" htmlFor={lora.key} title={lora.name}>
          {t.rich('form.scaleOf', {
            name: lora.name,
            hidden: (text) => <span className="visually-hidden">{text}</span>,
          })}
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
        {!(place.first && place.last) && (
          <span className="lora-moves">
            {([-1, 1] as const).map((by) => (
              <button
                key={by}
                type="button"
                aria-label={
                  by < 0
                    ? t('form.moveNameUp', { name: lora.name })
                    : t('form.moveNameDown', { name: lora.name })
                }
                title={by < 0 ? t('form.moveUp') : t('form.moveDown')}
                // Not disabled: the focus would be lost where a move ends the list.
                aria-disabled={by < 0 ? place.first : place.last}
                onClick={() => onMove(by)}
              >
                <ArrowIcon up={by < 0} />
              </button>
            ))}
          </span>
        )}
        <button
          type="button"
          className="icon"
          aria-label={t('form.removeName', { name: lora.name })}
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
              title={t('form.addToPrompt')}
              aria-label={t('form.addWord', { word })}
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
