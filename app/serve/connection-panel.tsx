import { useEffect, useRef } from 'react';
import { formatBytes, formatSize } from '../../lib/contract';
import type { RunProgress } from '../../lib/predictions/run-state';
import { type Connection, type CurrentJob, isConnected } from '../../lib/worker/connection';
import { useNow } from '../shared/browser';
import { Button } from '../shared/button';
import { Fact } from '../shared/fact';
import { LiveText, Problem } from '../shared/messages';
import { RunStage } from '../shared/run-stage';
import { t } from '../texts';
import '../texts/en/serve';
import { formatTime } from '../texts/format';
import { getServing } from './serving-store';
import { announce, sentencesOf, titleOf } from './texts';

/** Status of the connection, its current job, and its controls. */
export function ConnectionPanel(props: { connection: Connection; onDisconnect: () => void }) {
  const { connection, onDisconnect } = props;
  const { status } = connection;
  const busy = status === 'working' || status === 'uploading';
  const ended = status === 'disconnected' || status === 'refused';
  const resumable = status === 'paused' || (busy && connection.next === 'pause');
  const serving = getServing();
  const title = useRef<HTMLHeadingElement>(null);
  const shown = useRef(ended);
  useEffect(() => {
    // The pressed button has disappeared, and on a phone this panel is far below it.
    if (shown.current !== ended) title.current?.focus();
    shown.current = ended;
  }, [ended]);
  return (
    <section className="panel stage" aria-labelledby="connection-title" data-status={status}>
      <h2 id="connection-title" ref={title} tabIndex={-1}>
        {titleOf(connection)}
      </h2>
      {'error' in connection && connection.error && <Problem error={connection.error} />}
      {sentencesOf(connection).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {status === 'connecting' && <progress aria-label={t('serve.connecting')} />}
      {status === 'reconnecting' && <NextAttempt at={connection.at} />}
      {status === 'working' && <JobProgress job={connection.job} progress={connection.progress} />}
      {status === 'uploading' && (
        <>
          <progress aria-label={t('serve.sending', { bytes: formatBytes(connection.bytes) })} />
          <JobFacts job={connection.job} secondsRemaining={null} />
        </>
      )}
      {!ended && (
        <div className="actions">
          {isConnected(connection) &&
            (resumable ? (
              <Button onClick={() => serving.resume()}>{t('serve.resume')}</Button>
            ) : (
              <Button onClick={() => serving.pause()}>
                {busy ? t('serve.pauseAfter') : t('serve.pause')}
              </Button>
            ))}
          {status === 'reconnecting' && (
            <Button onClick={() => serving.retryNow()}>{t('serve.tryNow')}</Button>
          )}
          <Button onClick={onDisconnect}>
            {busy ? t('serve.handBack') : t('serve.disconnect')}
          </Button>
        </div>
      )}
      {!ended && <p className="field-hint">{t('serve.keepVisible')}</p>}
      <LiveText {...announce(connection)} />
    </section>
  );
}

function NextAttempt({ at }: { at: number }) {
  const seconds = Math.max(0, (at - useNow()) / 1000);
  return <p>{t('serve.nextAttempt', { time: formatTime(seconds) })}</p>;
}

/** Progress and preview of the current job. */
function JobProgress({ job, progress }: { job: CurrentJob; progress: RunProgress }) {
  return (
    <>
      <RunStage progress={progress} size={job.size} />
      <JobFacts job={job} secondsRemaining={progress.secondsRemaining} />
    </>
  );
}

/** Facts of the current job, without its owner, prompt and image. */
function JobFacts(props: { job: CurrentJob; secondsRemaining: number | null }) {
  const { job, secondsRemaining } = props;
  const elapsed = Math.max(0, useNow() - job.startedAt) / 1000;
  const facts: readonly (readonly [term: string, value: string])[] = [
    [t('serve.job'), job.id.slice(0, 8)],
    [t('serve.attempt'), `${job.attempt}`],
    [t('serve.video'), t('serve.videoOf', { size: formatSize(job.size), seconds: job.duration })],
    [t('serve.loras'), `${job.loras}`],
    [t('serve.elapsed'), formatTime(elapsed)],
    [
      t('serve.remaining'),
      secondsRemaining === null ? '–' : t('serve.about', { time: formatTime(secondsRemaining) }),
    ],
  ];
  return (
    <dl className="facts">
      {facts.map(([term, value]) => (
        <Fact key={term} name={term}>
          {value}
        </Fact>
      ))}
    </dl>
  );
}
