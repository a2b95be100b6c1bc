import Link from 'next/link';
import { type Dispatch, useState } from 'react';
import { formatPercent, formatSeconds } from '../../lib/contract/format';
import { useLibrary } from '../library';
import { useNow } from '../shared/browser';
import { describedBy, FieldNotes } from '../shared/fields';
import { LiveText, Problem } from '../shared/messages';
import { PartDownload } from '../shared/part-download';
import type { Example } from './examples';
import { type FormAction, type FormValues, typedPrompt } from './form-state';
import { type ImproveState, isApplied } from './improve-state';
import { outcomeText, ranOutOfTime } from './optimization-text';
import { PromptLengthNote } from './prompt-length';
import { Difference } from './prompt-record';
import { PromptTools } from './prompt-tools';
import { type Improve, improveLimits } from './use-improve';

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
  const { state, browserModel, start } = improve;
  const running = state.status === 'running';
  const idle = running || busy || prompt.trim() === '' || error !== undefined;
  return (
    <div className="field">
      <div className="field-head prompt-head">
        <label htmlFor="prompt">Prompt</label>
        <button
          type="button"
          className="small"
          disabled={idle}
          title="Say how things move, with a language model on this computer"
          onClick={() => start('library')}
        >
          {optimization ? 'Improve again' : 'Improve'}
        </button>
      </div>
      <textarea
        id="prompt"
        rows={4}
        placeholder="What should happen in the video?"
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
        {...{ prompt, onExample }}
        disabled={running}
        onPrompt={type}
        onReplace={(text) => change({ type: 'changed', values: { prompt: text } })}
      />
      {state.status === 'offering' && <LanguageModelOffer {...{ improve, busy }} />}
      {state.status !== 'offering' && browserModel !== 'unavailable' && !running && (
        <button type="button" className="small" disabled={idle} onClick={() => start('browser')}>
          Use the browser’s model (not repeatable)
        </button>
      )}
      {running && <Writing state={state} onCancel={improve.cancel} />}
      {state.status === 'failed' && <Problem error={state.error} />}
      {!running && <Outcome {...{ values, improve, busy }} />}
      <LiveText topic={state.status} text={announcement(state)} />
    </div>
  );
}

/** The download of a language model, or the browser's own one. */
function LanguageModelOffer({ improve, busy }: { improve: Improve; busy: boolean }) {
  const library = useLibrary();
  const tools = library.status === 'ready' ? library.snapshot.tools : [];
  const [tool] = tools.filter(({ origin }) => origin === 'listed');
  const { browserModel } = improve;
  return (
    <section className="improve" aria-label="Language model">
      <p>
        Improve needs a language model. It rewrites the prompt on this computer’s CPU: it says how
        things move and where the camera goes, keeps every subject, number, name and trigger word,
        and changes nothing until you have read it.
      </p>
      {tool && (
        <PartDownload entry={tool} component="language_model" name={tool.manifest.name}>
          Other models, and files of your own, are on the{' '}
          <Link href="/models#optimiser" prefetch={false}>
            Models page
          </Link>
          .
        </PartDownload>
      )}
      <div className="actions">
        {tools.some(({ ready }) => ready) && (
          <button
            type="button"
            className="primary"
            disabled={busy}
            onClick={() => improve.start('library')}
          >
            Improve now
          </button>
        )}
        {browserModel !== 'unavailable' && (
          <button type="button" disabled={busy} onClick={() => improve.start('browser')}>
            Use the browser’s own model
          </button>
        )}
        <button type="button" onClick={improve.cancel}>
          Not now
        </button>
      </div>
      {browserModel !== 'unavailable' && (
        <p className="field-hint">
          The browser’s own model is not repeatable: it takes no seed, and may give another text the
          next time.{' '}
          {browserModel !== 'available' && 'The browser downloads it first, several gigabytes.'}
        </p>
      )}
    </section>
  );
}

/** The text as it is written. */
function Writing(props: {
  state: Extract<ImproveState, { status: 'running' }>;
  onCancel: () => void;
}) {
  const { state, onCancel } = props;
  const { text, download, startedAt, request } = state;
  const seconds = Math.max(0, (useNow() - startedAt) / 1000);
  const loading = download === null || download === 1 ? 'Loading the language model …' : null;
  return (
    <section className="improve" aria-label="Improving the prompt">
      <p className="measure">
        {text
          ? `Writing … ${formatSeconds(seconds)}, at most ${formatSeconds(request.limitMs / 1000)} of writing`
          : (loading ?? `The browser downloads its model: ${formatPercent(download ?? 0)}`)}
      </p>
      <progress aria-label="Improving the prompt" />
      {text && <p className="draft">{text}</p>}
      <div className="actions">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </section>
  );
}

/** What became of the prompt: the difference and Undo, or why it stays. */
function Outcome(props: { values: FormValues; improve: Improve; busy: boolean }) {
  const { values, improve, busy } = props;
  const { prompt, optimization } = values;
  const { state, undo, cancel, waitLonger } = improve;
  const ended = state.status === 'ended' ? state.record : null;
  // The record in the form outlives this page; one that changed nothing is only in the state.
  const record = optimization ?? (ended && !isApplied(ended) ? ended : null);
  if (!record) return null;
  const edited = optimization !== null && prompt !== optimization.text;
  return (
    <section className="improve" aria-label="Improved prompt">
      <p>{outcomeText(edited ? { ...record, status: 'edited' } : record)}</p>
      {optimization && (
        <>
          <Difference before={optimization.original} after={prompt} />
          <p className="field-hint">
            You can edit the text above. Nothing runs until you press Generate.
          </p>
        </>
      )}
      <div className="actions">
        {optimization && (
          <button type="button" onClick={undo}>
            Undo
          </button>
        )}
        {ended && ranOutOfTime(ended) && (
          <button type="button" disabled={busy} onClick={waitLonger}>
            Wait longer, up to {formatSeconds(improveLimits.longer / 1000)}
          </button>
        )}
        {!optimization && (
          <button type="button" onClick={cancel}>
            Close
          </button>
        )}
      </div>
    </section>
  );
}

function announcement(state: ImproveState): string {
  if (state.status === 'running') return 'Improving the prompt.';
  return state.status === 'ended' ? outcomeText(state.record) : '';
}
