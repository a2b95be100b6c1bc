import { useEffect, useRef } from 'react';
import { formatBytes, formatSeconds } from '../../lib/contract/format';
import { type Connection, isConnected } from '../../lib/worker/connection';
import { useNow } from '../shared/browser';
import { LiveText, Problem } from '../shared/messages';
import { JobFacts, JobProgress } from './job-progress';
import { getServing } from './serving-store';
import { announce, sentencesOf, titleOf } from './wording';

/** Where the connection stands, what it works on, and its controls. */
export function ConnectionPanel(props: { connection: Connection; onDisconnect: () => void }) {
  const { connection, onDisconnect } = props;
  const { status } = connection;
  const busy = status === 'working' || status === 'uploading';
  const over = status === 'disconnected' || status === 'refused';
  const resumable = status === 'paused' || (busy && connection.next === 'pause');
  const serving = getServing();
  const title = useRef<HTMLHeadingElement>(null);
  const shown = useRef(over);
  useEffect(() => {
    // The button that was pressed is gone; on a phone this panel is far below it.
    if (shown.current !== over) title.current?.focus();
    shown.current = over;
  }, [over]);
  return (
    <section className="panel stage" aria-labelledby="connection-title" data-status={status}>
      <h2 id="connection-title" ref={title} tabIndex={-1}>
        {titleOf(connection)}
      </h2>
      {'error' in connection && connection.error && <Problem error={connection.error} />}
      {sentencesOf(connection).map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
      {status === 'connecting' && <progress aria-label="Connecting" />}
      {status === 'reconnecting' && <NextAttempt at={connection.at} />}
      {status === 'working' && <JobProgress job={connection.job} progress={connection.progress} />}
      {status === 'uploading' && (
        <>
          <progress aria-label={`Sending ${formatBytes(connection.bytes)}`} />
          <JobFacts job={connection.job} secondsRemaining={null} />
        </>
      )}
      {!over && (
        <div className="actions">
          {isConnected(connection) &&
            (resumable ? (
              <button type="button" onClick={() => serving.resume()}>
                Resume
              </button>
            ) : (
              <button type="button" onClick={() => serving.pause()}>
                {busy ? 'Pause after this job' : 'Pause'}
              </button>
            ))}
          {status === 'reconnecting' && (
            <button type="button" onClick={() => serving.retryNow()}>
              Try now
            </button>
          )}
          <button type="button" onClick={onDisconnect}>
            {busy ? 'Disconnect and hand the job back' : 'Disconnect'}
          </button>
        </div>
      )}
      {!over && (
        <p className="field-hint">
          Keep this tab open and visible: browsers slow down what nobody sees.
        </p>
      )}
      <LiveText {...announce(connection)} />
    </section>
  );
}

function NextAttempt({ at }: { at: number }) {
  const seconds = Math.max(0, (at - useNow()) / 1000);
  return <p>It is tried again in {formatSeconds(seconds)}.</p>;
}
