import { useRef } from 'react';
import {
  addedSentences,
  languageModelsOf,
  type PromptOptimization,
  withoutSentence,
} from '../../../lib/contract';
import { useLibrary } from '../../library';
import { typeInto, useNow } from '../../shared/browser';
import { Button } from '../../shared/button';
import { CloseIcon } from '../../shared/icons';
import { linkTo } from '../../shared/link';
import { LiveText, Problem } from '../../shared/messages';
import { PartDownload } from '../../shared/part-download';
import { t } from '../../texts';
import '../../texts/en/form';
import '../../texts/en/improve';
import { formatTime } from '../../texts/format';
import { outcomeText, ranOutOfTime } from '../result/optimization-text';
import type { FormValues } from './form-state';
import { type Improve, type ImproveState, improveLimits, isApplied } from './use-improve';

/** What comes of the button that improves the prompt: an offer, the text as it is written, and the outcome. */
export function ImproveParts(props: { values: FormValues; improve: Improve; busy: boolean }) {
  const { improve, busy } = props;
  const { state } = improve;
  const running = state.status === 'running';
  return (
    <>
      {state.status === 'offering' && <LanguageModelOffer improve={improve} busy={busy} />}
      {running && <Writing state={state} onCancel={improve.cancel} />}
      {state.status === 'failed' && <Problem error={state.error} />}
      {!running && <Outcome {...props} />}
      <LiveText topic={state.status} text={announcement(state)} />
    </>
  );
}

/** The download of a language model. */
function LanguageModelOffer({ improve, busy }: { improve: Improve; busy: boolean }) {
  const library = useLibrary();
  const tools = library.status === 'ready' ? languageModelsOf(library.snapshot.tools) : [];
  const [tool] = tools.filter(({ origin }) => origin === 'listed');
  return (
    <section
      className="improve stack bordered rounded on-sunken text-l mt-8"
      aria-label={t('improve.languageModel')}
    >
      <p>{t('improve.languageModelOffer')}</p>
      {tool && (
        <PartDownload entry={tool} component="language_model" name={tool.manifest.name}>
          {t.rich('improve.otherLanguageModels', {
            models: linkTo('/models#optimiser'),
          })}
        </PartDownload>
      )}
      <div className="actions small">
        {tools.some(({ ready }) => ready) && (
          <Button className="primary" disabled={busy} onClick={improve.start}>
            {t('improve.improveNow')}
          </Button>
        )}
        <Button onClick={improve.cancel}>{t('shared.notNow')}</Button>
      </div>
    </section>
  );
}

/** The text as it is written. */
function Writing(props: {
  state: Extract<ImproveState, { status: 'running' }>;
  onCancel: () => void;
}) {
  const { state, onCancel } = props;
  const { text, startedAt, request } = state;
  const seconds = Math.max(0, (useNow() - startedAt) / 1000);
  return (
    <section
      className="improve stack bordered rounded on-sunken text-l mt-8"
      aria-label={t('improve.improving')}
    >
      <p className="measure numbers">
        {text
          ? t('improve.writing', {
              time: formatTime(seconds),
              limit: formatTime(request.limitMs / 1000),
            })
          : t('improve.loadingLanguageModel')}
      </p>
      <progress aria-label={t('improve.improving')} />
      {text && <p className="draft muted break">{text}</p>}
      <div className="actions small">
        <Button onClick={onCancel}>{t('improve.cancel')}</Button>
      </div>
    </section>
  );
}

/** What became of the prompt: the added sentences and Undo, or why it stays. */
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
    <section
      className="improve stack bordered rounded on-sunken text-l mt-8"
      aria-label={t('improve.improvedPrompt')}
    >
      <p>{outcomeText(edited ? { ...record, status: 'edited' } : record)}</p>
      {optimization && (
        <>
          <AddedSentences optimization={optimization} prompt={prompt} />
          <p className="field-hint">{t('improve.improvedHint')}</p>
        </>
      )}
      <div className="actions small">
        {optimization && <Button onClick={undo}>{t('form.undo')}</Button>}
        {ended && ranOutOfTime(ended) && (
          <Button disabled={busy} onClick={waitLonger}>
            {t('improve.waitLonger', { time: formatTime(improveLimits.longer / 1000) })}
          </Button>
        )}
        {!optimization && <Button onClick={cancel}>{t('shared.close')}</Button>}
      </div>
    </section>
  );
}

/** The sentences that were added, each with a button that removes it. */
function AddedSentences(props: { optimization: PromptOptimization; prompt: string }) {
  const { optimization, prompt } = props;
  const list = useRef<HTMLUListElement>(null);
  const sentences = addedSentences(optimization, prompt);
  function remove(sentence: string, index: number): void {
    typeInto('prompt', withoutSentence(optimization, prompt, sentence));
    // The button goes with its sentence: the focus moves to the next one.
    requestAnimationFrame(() => {
      const buttons = [...(list.current?.querySelectorAll('button') ?? [])];
      const next = buttons[index] ?? buttons.at(-1) ?? document.getElementById('prompt');
      next?.focus();
    });
  }
  if (sentences.length === 0) return null;
  return (
    <ul ref={list} className="stack gap-0" aria-label={t('improve.added')}>
      {sentences.map((sentence, index) => (
        <li key={sentence} className="row between item break">
          {sentence}
          <Button
            className="icon"
            aria-label={t('improve.removeSentence', { sentence })}
            onClick={() => remove(sentence, index)}
          >
            <CloseIcon />
          </Button>
        </li>
      ))}
    </ul>
  );
}

function announcement(state: ImproveState): string {
  if (state.status === 'running') return t('improve.improvingNow');
  return state.status === 'ended' ? outcomeText(state.record) : '';
}
