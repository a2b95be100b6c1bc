import { formatSize, type PromptOptimizationStatus, type SafetyStatus } from '../../lib/contract';
import type { ServedJob, ServeOptions } from '../../lib/worker/api';
import { type Connection, isConnected } from '../../lib/worker/connection';
import { Fact } from '../shared/fact';
import { HelpLink } from '../shared/messages';
import { errorSentences, type TextKey, t } from '../texts';
import '../texts/en/serve';
import { formatDate, formatTime, listOf } from '../texts/format';

/** Which jobs this worker takes, of whom, and who can see their content. */
export function TakesPanel(props: {
  options: Pick<ServeOptions, 'model' | 'precision' | 'sizes'> | null;
  connection: Connection;
}) {
  const { options, connection } = props;
  const identity = isConnected(connection) ? connection.identity : null;
  return (
    <section className="panel takes" aria-labelledby="takes-title">
      <h2 id="takes-title">{t('serve.takes')}</h2>
      {options && (
        <dl className="facts">
          <Fact name={t('shared.model')}>{options.model}</Fact>
          <Fact name={t('serve.precision')}>{options.precision}</Fact>
          <Fact name={t('serve.sizes')}>{options.sizes.map(formatSize).join(', ')}</Fact>
          <Fact name={t('serve.loras')}>{t('serve.upTo', { count: 3 })}</Fact>
          <Fact name={t('serve.length')}>{t('serve.lengths', { from: 5, to: 10 })}</Fact>
          {identity && (
            <Fact name={t('serve.jobsOf')}>
              {identity.shared
                ? t('serve.ownerAndShared', { owner: identity.owner })
                : identity.owner}
            </Fact>
          )}
          {identity && (
            <Fact name={t('serve.queue')}>{t('serve.waiting', { count: identity.waiting })}</Fact>
          )}
        </dl>
      )}
      {identity && options && !accepts(identity.accepts_models, options.model) && (
        <p className="field-error">
          {t('serve.notAccepted', { models: listOf(identity.accepts_models, 'disjunction') })}
        </p>
      )}
      <p className="field-hint">{t('serve.privacy')}</p>
    </section>
  );
}

function accepts(models: readonly string[], model: string): boolean {
  return models.length === 0 || models.includes('*') || models.includes(model);
}

const verdictNames: Readonly<Record<SafetyStatus, TextKey>> = {
  clear: 'serve.checkClear',
  flagged: 'serve.checkFlagged',
  unverified: 'serve.checkNone',
  off: 'serve.checkOff',
};

const promptNames: Readonly<Record<PromptOptimizationStatus, TextKey>> = {
  used: 'serve.promptImproved',
  edited: 'serve.promptImproved',
  unchanged: 'serve.promptUnchanged',
  unavailable: 'serve.promptUnavailable',
  failed: 'serve.promptUnchanged',
};

/** The jobs that have ended since the page was opened. */
export function ServedList(props: { served: readonly ServedJob[]; completed: number }) {
  const { served, completed } = props;
  if (served.length === 0) return null;
  return (
    <section className="panel served" aria-labelledby="served-title">
      <h2 id="served-title">{t('serve.done', { count: completed })}</h2>
      <ul>
        {served.map((job) => (
          <li key={`${job.id} ${job.attempt} ${job.endedAt}`} data-outcome={job.outcome}>
            <span className="muted">{job.id.slice(0, 8)}</span>
            <span className="served-outcome">{t(`names.outcome.${job.outcome}`)}</span>
            <span>{formatTime(job.seconds)}</span>
            {job.safety && <span>{t(verdictNames[job.safety])}</span>}
            {job.prompt && <span>{t(promptNames[job.prompt])}</span>}
            <time className="muted" dateTime={new Date(job.endedAt).toISOString()}>
              {formatDate(new Date(job.endedAt).toISOString(), { timeStyle: 'medium' })}
            </time>
            {job.error && (
              <span className="served-error break">
                {errorSentences(job.error)} <HelpLink to={job.error.code} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
