import { type Dispatch, lazy, Suspense, useState } from 'react';
import { typeInto } from '../../shared/browser';
import { describedBy, FieldNotes } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import type { Example } from './examples';
import { type FormAction, type FormValues, typedPrompt } from './form-state';
import { PromptLengthNote } from './prompt-length';
import { PromptTools } from './prompt-tools';
import type { Improve } from './use-improve';

// Nothing of it is seen before someone asks for it.
const ImproveParts = lazy(async () => ({
  default: (await import('./improve-parts')).ImproveParts,
}));

/** The prompt, with the button that improves it and what comes of that. */
export function PromptField(props: {
  values: FormValues;
  error: string | undefined;
  improve: Improve;
  /** A generation is running: it needs the memory. */
  busy: boolean;
  change: Dispatch<FormAction>;
  /** Id of the selected model, where it is in this browser: its tokenizer measures the prompt. */
  tokenizer: string | null;
  onExample: (example: Example) => void;
}) {
  const { values, error, improve, busy, change, tokenizer, onExample } = props;
  // The tokenizer is loaded by the first person who writes.
  const [used, setUsed] = useState(false);
  const type = (text: string) =>
    change({ type: 'changed', values: typedPrompt(text, optimization) });
  const { prompt, optimization } = values;
  const { state, start } = improve;
  const running = state.status === 'running';
  const idle = running || busy || prompt.trim() === '' || error !== undefined;
  return (
    <div className="field">
      <div className="field-head row between mb-8">
        <label htmlFor="prompt">{t('form.prompt')}</label>
        <button
          type="button"
          className="small"
          disabled={idle}
          title={t('form.improveHint')}
          onClick={start}
        >
          {optimization ? t('form.improveAgain') : t('form.improve')}
        </button>
      </div>
      <textarea
        id="prompt"
        rows={4}
        placeholder={t('form.promptPlaceholder')}
        value={prompt}
        readOnly={running}
        aria-busy={running}
        {...describedBy('prompt', error)}
        onFocus={() => setUsed(true)}
        onChange={(event) => type(event.target.value)}
      />
      <PromptLengthNote id="prompt-length" text={prompt} model={used ? tokenizer : null} />
      <FieldNotes id="prompt" error={error} />
      <PromptTools
        prompt={prompt}
        onExample={onExample}
        disabled={running}
        onPrompt={(text) => typeInto('prompt', text)}
        onReplace={(text) => change({ type: 'changed', values: { prompt: text } })}
      />
      <Suspense>
        <ImproveParts values={values} improve={improve} busy={busy} />
      </Suspense>
    </div>
  );
}
