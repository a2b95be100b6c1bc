import { lazy, Suspense, useState } from 'react';
import { typeInto } from '../../shared/browser';
import { describedBy, FieldNotes } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { typedPrompt } from './form-state';
import { PromptLengthNote } from './prompt-length';
import { PromptTools } from './prompt-tools';

// Nothing of it is seen before someone asks for it.
const ImproveParts = lazy(async () => ({
  default: (await import('./improve-parts')).ImproveParts,
}));

/** The prompt, with the button that improves it and what comes of that. */
export function PromptField() {
  const { values, errors, improve, busy, model, set, onExample } = useFields();
  const error = errors.prompt;
  // That of the model measures the prompt.
  const tokenizer = model?.ready ? model.manifest.id : null;
  // The tokenizer is loaded by the first person who writes.
  const [used, setUsed] = useState(false);
  const type = (text: string) => set(typedPrompt(text, optimization));
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
        onReplace={(text) => set({ prompt: text })}
      />
      <Suspense>
        <ImproveParts values={values} improve={improve} busy={busy} />
      </Suspense>
    </div>
  );
}
