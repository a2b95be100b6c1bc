import Link from 'next/link';
import { languageModelsOf } from '../../../lib/contract/library';
import { useLibrary } from '../../library';
import { useNow } from '../../shared/browser';
import { LiveText, Problem } from '../../shared/messages';
import { PartDownload } from '../../shared/part-download';
import { t } from '../../texts';
import '../../texts/en/form';
import '../../texts/en/improve';
import { formatTime } from '../../texts/format';
import { outcomeText, ranOutOfTime } from '../result/optimization-text';
import { Difference } from '../result/prompt-record';
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
    <section className="improve" aria-label={t('improve.languageModel')}>
      <p>{t('improve.languageModelOffer')}</p>
      {tool && (
        <PartDownload entry={tool} component="language_model" name={tool.manifest.name}>
          {t.rich('improve.otherLanguageModels', {
            models: (name) => (
              <Link href="/models#optimiser" prefetch={false}>
                {name}
              </Link>
            ),
          })}
        </PartDownload>
      )}
      <div className="actions">
        {tools.some(({ ready }) => ready) && (
          <button type="button" className="primary" disabled={busy} onClick={improve.start}>
            {t('improve.improveNow')}
          </button>
        )}
        <button type="button" onClick={improve.cancel}>
          {t('shared.notNow')}
        </button>
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
    <section className="improve" aria-label={t('improve.improving')}>
      <p className="measure">
        {text
          ? t('improve.writing', {
              time: formatTime(seconds),
              limit: formatTime(request.limitMs / 1000),
            })
          : t('improve.loadingLanguageModel')}
      </p>
      <progress aria-label={t('improve.improving')} />
      {text && <p className="draft">{text}</p>}
      <div className="actions">
        <button type="button" onClick={onCancel}>
          {t('improve.cancel')}
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
    <section className="improve" aria-label={t('improve.improvedPrompt')}>
      <p>{outcomeText(edited ? { ...record, status: 'edited' } : record)}</p>
      {optimization && (
        <>
          <Difference before={optimization.original} after={prompt} />
          <p className="field-hint">{t('improve.improvedHint')}</p>
        </>
      )}
      <div className="actions">
        {optimization && (
          <button type="button" onClick={undo}>
            {t('form.undo')}
          </button>
        )}
        {ended && ranOutOfTime(ended) && (
          <button type="button" disabled={busy} onClick={waitLonger}>
            {t('improve.waitLonger', { time: formatTime(improveLimits.longer / 1000) })}
          </button>
        )}
        {!optimization && (
          <button type="button" onClick={cancel}>
            {t('shared.close')}
          </button>
        )}
      </div>
    </section>
  );
}

function announcement(state: ImproveState): string {
  if (state.status === 'running') return t('improve.improvingNow');
  return state.status === 'ended' ? outcomeText(state.record) : '';
}
