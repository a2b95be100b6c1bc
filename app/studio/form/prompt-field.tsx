import { useEffect, useState } from 'react';
import { typeInto } from '../../shared/browser';
import { Button } from '../../shared/button';
import { describedBy, FieldNotes } from '../../shared/fields';
import { useActed } from '../../shared/first-act';
import { later } from '../../shared/later';
import { t } from '../../texts';
import '../../texts/en/form';
import type { OptimizerApi, PromptLength } from '../../../lib/contract';
import type { WorkerClient } from '../../../lib/predictions/worker-client';
import { createOptimizerClient } from '../../optimizer-client';
import { useFields } from './form-context';
import { typedPrompt } from './form-state';
import { PromptTools } from './prompt-tools';

// Nothing of it is seen before someone asks for it.
const ImproveParts = later(async () => (await import('./improve-parts')).ImproveParts);

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
  const acted = useActed();
  const running = state.status === 'running';
  const idle = running || busy || prompt.trim() === '' || error !== undefined;
  return (
    <div className="field">
      <div className="field-head row between mb-8">
        <label htmlFor="prompt">{t('form.prompt')}</label>
        <Button className="small" disabled={idle} title={t('form.improveHint')} onClick={start}>
          {optimization ? t('form.improveAgain') : t('form.improve')}
        </Button>
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
      {(acted || optimization) && <ImproveParts values={values} improve={improve} busy={busy} />}
    </div>
  );
}

/** Characters of what is read, and of what is not, that the note shows. */
const shown = { before: 80, after: 400 } as const;

/** Share of the limit from which the tokens are counted before the user. */
const nearLimit = 0.75;

/** How many tokens a prompt has, where they come near the limit, and what of it the model does not read. */
function PromptLengthNote(props: { id: string; text: string; model: string | null }) {
  const measured = usePromptLength(props.text, props.model);
  const isOver = measured !== null && measured.tokens > measured.limit;
  return (
    <div id={props.id}>
      {measured && measured.tokens > nearLimit * measured.limit && (
        <p className="token-count muted text-s numbers" data-over={isOver || undefined}>
          {t('form.tokens', { tokens: measured.tokens, limit: measured.limit })}
        </p>
      )}
      <div role="status">{isOver && <CutText measured={measured} />}</div>
    </div>
  );
}

function CutText({ measured: { text, kept, limit } }: { measured: MeasuredPrompt }) {
  const start = Math.max(0, kept - shown.before);
  const end = kept + shown.after;
  return (
    <div className="info on-bad">
      <p>{t('form.tokensCut', { limit })}</p>
      <p className="token-text break mt-8">
        {start > 0 && '… '}
        {text.slice(start, kept)}
        <mark>{text.slice(kept, end)}</mark>
        {end < text.length && ' …'}
      </p>
    </div>
  );
}

/** Milliseconds without a key before the prompt is measured. */
const typingMs = 400;
/** Milliseconds without a measurement after which the worker, with its tokenizer, ends. */
const idleMs = 30_000;

/** The worker that has the tokenizer; null where none runs. */
let client: WorkerClient<OptimizerApi> | null = null;
let idle: ReturnType<typeof setTimeout> | undefined;

async function measure(model: string, text: string): Promise<PromptLength> {
  clearTimeout(idle);
  client ??= createOptimizerClient();
  const { api, crashed } = client.open();
  try {
    return await Promise.race([api.measurePrompt(model, text), crashed]);
  } finally {
    clearTimeout(idle);
    idle = setTimeout(() => {
      client?.close();
      client = null;
    }, idleMs);
  }
}

/** A prompt that was measured. */
interface MeasuredPrompt extends PromptLength {
  readonly text: string;
}

/**
 * The length of a prompt in tokens of a model, measured in a worker when typing pauses.
 *
 * @param model id of a model that is in this browser; null measures nothing
 * @returns null until it is measured, and where that fails: the run then says why
 */
function usePromptLength(text: string, model: string | null): MeasuredPrompt | null {
  const [measured, setMeasured] = useState<MeasuredPrompt | null>(null);
  const isEmpty = text.trim() === '';
  useEffect(() => {
    if (model === null || isEmpty) return;
    let stale = false;
    const timer = setTimeout(() => {
      measure(model, text).then(
        (length) => stale || setMeasured({ ...length, text }),
        () => stale || setMeasured(null),
      );
    }, typingMs);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [text, isEmpty, model]);
  return isEmpty || model === null ? null : measured;
}
