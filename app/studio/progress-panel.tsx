import { useEffect, useRef } from 'react';
import type { RunProgress, RunState } from '../../lib/predictions/run-state';
import { getRunner } from '../runner';
import { Announcer } from './announcer';
import { formatSeconds } from './format';
import { planSentence } from './memory-plan';
import { RunStage } from './run-stage';
import { useNow } from './use-now';

/** The run of this tab: where it is, how long it takes, what it looks like, and its controls. */
export function ProgressPanel({ run }: { run: Exclude<RunState, { status: 'idle' }> }) {
  const { ending } = run;
  const running = run.status === 'running';
  // Both act between two steps of the denoising loop, and nowhere else.
  const stepping = running && run.progress.phase === 'denoise' && ending === null;
  const held = running && (run.progress.paused || run.progress.pausing);
  const runner = getRunner();
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    // On a phone the panel is far below the button that started it.
    panel.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  return (
    <section ref={panel} className="panel stage" aria-labelledby="progress-title">
      <h2 id="progress-title">{titleOf(run)}</h2>
      {run.status === 'waiting' && run.elsewhere && (
        <p>Another tab is using the GPU. This video starts when that one ends.</p>
      )}
      {running && <Details progress={run.progress} startedAt={run.startedAt} />}
      {!running && <progress aria-label="Waiting" />}
      {running && run.progress.pausing && ending === null && <p>Pauses after this step.</p>}
      <div className="actions">
        {running && (
          <button
            type="button"
            disabled={held ? ending !== null : !stepping}
            title={held ? 'Go on with the steps' : 'Hold after this step'}
            onClick={() => void (held ? runner.resume() : runner.pause()).catch(() => {})}
          >
            {held ? 'Resume' : 'Pause'}
          </button>
        )}
        {running && (
          <button
            type="button"
            disabled={!stepping}
            title="Stop after this step and keep what is there"
            onClick={() => void runner.finishEarly().catch(() => {})}
          >
            Finish early
          </button>
        )}
        <button type="button" disabled={ending === 'cancel'} onClick={() => runner.cancel()}>
          Cancel
        </button>
      </div>
      <Announcer run={run} />
    </section>
  );
}

function titleOf(run: Exclude<RunState, { status: 'idle' }>): string {
  if (run.ending === 'cancel') return 'Cancelling …';
  if (run.ending === 'finish') return 'Finishing early …';
  if (run.status === 'waiting') return run.elsewhere ? 'Waiting for the GPU' : 'Starting …';
  return run.progress.paused ? 'Paused' : 'Making your video';
}

function Details({ progress, startedAt }: { progress: RunProgress; startedAt: number }) {
  const { secondsPerStep, secondsRemaining, memory } = progress;
  const elapsedSeconds = (useNow() - startedAt) / 1000;
  return (
    <>
      <RunStage progress={progress} />
      {memory && <p className="field-hint">{planSentence(memory)}</p>}
      <dl className="facts">
        <div>
          <dt>Elapsed</dt>
          <dd>{formatSeconds(elapsedSeconds)}</dd>
        </div>
        <div>
          <dt>Remaining</dt>
          <dd>{secondsRemaining === null ? '–' : `about ${formatSeconds(secondsRemaining)}`}</dd>
        </div>
        <div>
          <dt>Per step</dt>
          <dd>{secondsPerStep === null ? '–' : formatSeconds(secondsPerStep, true)}</dd>
        </div>
      </dl>
    </>
  );
}
