import { useEffect, useRef } from 'react';
import { formatSeconds } from '../../lib/contract/format';
import type { RunProgress, RunState } from '../../lib/predictions/run-state';
import { getRunner } from '../runner';
import { useNow } from '../shared/browser';
import { LiveText } from '../shared/messages';
import { memoryPlanText } from '../shared/run-progress';
import { RunStage } from '../shared/run-stage';
import { twoDigits } from '../shared/safety-text';

/** The generation of this tab: progress, times, preview and controls. */
export function ProgressPanel({ run }: { run: Exclude<RunState, { status: 'idle' }> }) {
  const { ending, continuation } = run;
  const running = run.status === 'running';
  // The other runs only decode.
  const denoises = continuation === null || continuation === 'resume';
  // Pause and Finish early take effect only between two steps of the denoising loop.
  const stepping = running && run.progress.phase === 'denoise' && ending === null;
  const paused = running && (run.progress.paused || run.progress.pausing);
  const runner = getRunner();
  const panel = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On a phone the panel is far below the Generate button.
    panel.current?.scrollIntoView({ block: 'nearest' });
    // The button that started the run, in the card of a past one, is gone or about to go.
    const { activeElement, body } = document;
    if (continuation !== null || activeElement === body) heading.current?.focus();
  }, [continuation]);
  return (
    <section ref={panel} className="panel stage" aria-labelledby="progress-title">
      <h2 id="progress-title" ref={heading} tabIndex={-1}>
        {titleOf(run)}
      </h2>
      {run.status === 'waiting' && run.elsewhere && (
        <p>Another tab is using the GPU. This video starts when that one ends.</p>
      )}
      {running && ending === null && <InputNotice check={run.progress.inputCheck} />}
      {running && run.progress.checkpointProblem && (
        <p role="alert" className="run-notice">
          {run.progress.checkpointProblem.sentence}
        </p>
      )}
      {running && <Details progress={run.progress} startedAt={run.startedAt} />}
      {!running && <progress aria-label="Waiting" />}
      {running && run.progress.pausing && ending === null && <p>Pauses after this step.</p>}
      {running && run.progress.paused && ending === null && (
        <p className="field-hint">
          The graphics card is still in use. Pause for later frees it: this page can then be closed,
          and the video resumed at any time.
        </p>
      )}
      <div className="actions">
        {running && denoises && (
          <button
            type="button"
            disabled={paused ? ending !== null : !stepping}
            title={paused ? 'Continue with the steps' : 'Pause after this step'}
            onClick={() => void (paused ? runner.resume() : runner.pause()).catch(() => {})}
          >
            {paused ? 'Resume' : 'Pause'}
          </button>
        )}
        {running && denoises && (
          <button
            type="button"
            disabled={!stepping || run.progress.checkpointProblem?.problem === 'unsaved'}
            title="Save the state after this step and free the graphics card"
            onClick={() => void runner.suspend().catch(() => {})}
          >
            Pause for later
          </button>
        )}
        {running && denoises && (
          <button
            type="button"
            disabled={!stepping}
            title="Stop after this step and decode the result"
            onClick={() => void runner.finishEarly().catch(() => {})}
          >
            Finish early
          </button>
        )}
        <button type="button" disabled={ending === 'cancel'} onClick={() => runner.cancel()}>
          Cancel
        </button>
      </div>
      <LiveText topic={announcementTopic(run)} text={announcement(run)} />
    </section>
  );
}

function titleOf(run: Exclude<RunState, { status: 'idle' }>): string {
  if (run.ending === 'cancel') return 'Cancelling …';
  if (run.ending === 'suspend') return 'Pausing for later …';
  if (run.ending === 'finish') return 'Finishing early …';
  if (run.status === 'waiting') return run.elsewhere ? 'Waiting for the GPU' : 'Starting …';
  if (run.continuation === 'finish') return 'Finishing early …';
  if (run.continuation === 'refine') return 'Decoding again in full quality';
  return run.progress.paused ? 'Paused' : 'Making your video';
}

/** What the safety checker says of the start image, before minutes are spent; nothing where it is clear. */
function InputNotice({ check }: { check: RunProgress['inputCheck'] }) {
  if (!check || (!check.flagged && check.score !== null)) return null;
  return (
    <div role="alert" className="input-notice">
      {check.score === null ? (
        <p>
          <strong>The safety check of the start image failed.</strong> The video is made all the
          same, and is blurred until you click it if its own check fails too.
        </p>
      ) : (
        <p>
          <strong>The safety checker flags the start image</strong> (score {twoDigits(check.score)}
          ). The video is made all the same, and is blurred until you click it if it is flagged too.
        </p>
      )}
      <button type="button" onClick={() => getRunner().cancel()}>
        Cancel this video
      </button>
    </div>
  );
}

function Details({ progress, startedAt }: { progress: RunProgress; startedAt: number }) {
  const { secondsPerStep, secondsRemaining, memory, sampling } = progress;
  const elapsedSeconds = (useNow() - startedAt) / 1000;
  return (
    <>
      <RunStage progress={progress} />
      {sampling && <p className="field-hint">{sampling}</p>}
      {memory && <p className="field-hint">{memoryPlanText(memory)}</p>}
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

/** A screen reader announces a new topic at once. */
function announcementTopic(run: RunState): string {
  if (run.status !== 'running') return run.status;
  return `${run.progress.phase} ${run.progress.clip} ${run.progress.paused}`;
}

function announcement(run: RunState): string {
  if (run.status === 'idle') return '';
  if (run.status === 'waiting') {
    return run.elsewhere ? 'Waiting: another tab is using the GPU.' : 'Starting.';
  }
  const { phase, step, steps, secondsRemaining, paused } = run.progress;
  if (paused) return 'Paused.';
  if (phase !== 'denoise') return phase ? `Phase: ${phase}.` : 'Starting.';
  const rest =
    secondsRemaining === null ? '' : `, about ${formatSeconds(secondsRemaining)} remaining`;
  return `Step ${step} of ${steps}${rest}.`;
}
