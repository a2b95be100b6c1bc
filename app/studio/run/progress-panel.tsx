import { type ReactNode, useEffect, useRef } from 'react';
import type { Prediction } from '../../../lib/contract';
import {
  initialProgress,
  type RunProgress,
  type RunState,
} from '../../../lib/predictions/run-state';
import { getQueue, getRunner } from '../../runner';
import { showOpened, useNow } from '../../shared/browser';
import { Button } from '../../shared/button';
import { Fact } from '../../shared/fact';
import { LiveText } from '../../shared/messages';
import { memoryPlanText } from '../../shared/run-progress';
import { RunStage } from '../../shared/run-stage';
import { twoDigits } from '../../shared/safety-text';
import { t } from '../../texts';
import '../../texts/en/run';
import { formatTime } from '../../texts/format';
import { RunPictures } from './run-pictures';

/** The generation of this tab: progress, times, preview and controls. */
export function ProgressPanel({ run }: { run: Exclude<RunState, { status: 'idle' }> }) {
  const { ending, continuation } = run;
  const { parameters, options } = run.prediction;
  const running = run.status === 'running';
  // Pause and Finish early take effect only between two steps of the denoising loop.
  const stepping = running && run.progress.phase === 'denoise' && ending === null;
  const runner = getRunner();
  const panel = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const order = (sent: Promise<unknown>) => {
    // The button goes, and the title says what comes of it.
    heading.current?.focus();
    sent.catch(() => {}); // The run may have ended meanwhile: then there is nothing to do.
  };
  useEffect(() => {
    // On a phone the panel is far above the Generate button.
    panel.current?.scrollIntoView({ block: 'nearest' });
    // The button that started the run, in the card of a past one, is gone or about to go.
    const { activeElement, body } = document;
    if (continuation !== null || activeElement === body) heading.current?.focus();
  }, [continuation]);
  return (
    <section ref={panel} className="panel stage" aria-labelledby="progress-title">
      {/* In sight however low the window is; what comes and goes lies below what is pressed. */}
      <div className="split">
        <h2 id="progress-title" ref={heading} tabIndex={-1}>
          {titleOf(run)}
        </h2>
        <div className="actions run-actions">
          {running && run.progress.tuning && ending === null && (
            <Button title={t('run.skipTuningTitle')} onClick={() => order(runner.skipTuning())}>
              {t('shared.skip')}
            </Button>
          )}
          {stepping && run.progress.checkpointProblem?.problem !== 'unsaved' && (
            <Button title={t('run.pauseTitle')} onClick={() => order(getQueue().pauseRun())}>
              {t('run.pause')}
            </Button>
          )}
          {stepping && (
            <Button title={t('run.finishTitle')} onClick={() => order(runner.finishEarly())}>
              {t('run.finishEarly')}
            </Button>
          )}
          <Button disabled={ending === 'cancel'} onClick={() => runner.cancel()}>
            {t('run.cancel')}
          </Button>
        </div>
      </div>
      {run.status === 'waiting' && run.elsewhere && <p>{t('run.gpuTaken')}</p>}
      {running && ending === null && <InputNotice check={run.progress.inputCheck} />}
      {running && run.progress.checkpointProblem && (
        <p role="alert" className="info on-sunken">
          {run.progress.checkpointProblem.sentence}
        </p>
      )}
      {running || !run.elsewhere ? (
        <Details
          progress={running ? run.progress : initialProgress(parameters, options)}
          prediction={run.prediction}
          startedAt={running ? run.startedAt : null}
        />
      ) : (
        <progress aria-label={t('run.waiting')} />
      )}
      {running && <Hints progress={run.progress} />}
      <LiveText topic={announcementTopic(run)} text={announcement(run)} />
    </section>
  );
}

function titleOf(run: Exclude<RunState, { status: 'idle' }>): string {
  if (run.ending === 'cancel') return t('run.cancelling');
  if (run.ending === 'pause') return t('run.pausing');
  if (run.ending === 'finish') return t('run.finishing');
  if (run.status === 'waiting') return run.elsewhere ? t('run.waitingForGpu') : t('run.starting');
  if (run.continuation === 'finish') return t('run.finishing');
  if (run.continuation === 'refine') return t('run.refining');
  return t('run.making');
}

const strong = (text: ReactNode) => <strong>{text}</strong>;

/** What the safety checker says of the start image, before minutes are spent; nothing where it is clear. */
function InputNotice({ check }: { check: RunProgress['inputCheck'] }) {
  if (!check || (!check.flagged && check.score !== null)) return null;
  return (
    <div role="alert" className="split info on-bad">
      <p className="grow">
        {check.score === null
          ? t.rich('run.imageCheckFailed', { strong })
          : t.rich('run.imageFlagged', { strong, score: twoDigits(check.score) })}
      </p>
      <Button onClick={() => getRunner().cancel()}>{t('run.cancelVideo')}</Button>
    </div>
  );
}

function Details(props: {
  progress: RunProgress;
  prediction: Prediction;
  startedAt: number | null;
}) {
  const { progress, prediction, startedAt } = props;
  const { secondsPerStep, secondsRemaining } = progress;
  const now = useNow();
  return (
    <>
      <RunStage
        progress={progress}
        size={prediction.parameters.size}
        pictures={<RunPictures prediction={prediction} />}
      />
      <dl className="facts">
        <Fact name={t('run.elapsed')}>
          {startedAt === null ? '–' : formatTime((now - startedAt) / 1000)}
        </Fact>
        <Fact name={t('run.remaining')}>
          {secondsRemaining === null ? '–' : t('run.about', { time: formatTime(secondsRemaining) })}
        </Fact>
        <Fact name={t('run.perStep')}>
          {secondsPerStep === null ? '–' : formatTime(secondsPerStep, true)}
        </Fact>
      </dl>
    </>
  );
}

/** How the run computes: for those who ask. */
function Hints({ progress: { sampling, kernels, memory } }: { progress: RunProgress }) {
  if (!sampling && !kernels && !memory) return null;
  return (
    <details className="result-facts" onToggle={showOpened}>
      <summary>{t('run.details')}</summary>
      {sampling && <p className="field-hint">{sampling}</p>}
      {kernels && (
        <p className="field-hint" title={kernels.reason ?? undefined}>
          {t(`run.replaced.${kernels.computes}`, { asked: t(`shared.kernels.${kernels.asked}`) })}
        </p>
      )}
      {memory && <p className="field-hint">{memoryPlanText(memory)}</p>}
    </details>
  );
}

/** A screen reader announces a new topic at once. */
function announcementTopic(run: RunState): string {
  if (run.status !== 'running') return run.status;
  return `${run.progress.phase} ${run.progress.clip}`;
}

function announcement(run: RunState): string {
  if (run.status === 'idle') return '';
  if (run.status === 'waiting') {
    return run.elsewhere ? t('run.saysWaiting') : t('run.saysStarting');
  }
  const { phase, step, steps, secondsRemaining } = run.progress;
  if (phase !== 'denoise') return phase ? t(`run.saysPhase.${phase}`) : t('run.saysStarting');
  if (secondsRemaining === null) return t('run.saysStep', { step, steps });
  return t('run.saysStepLeft', { step, steps, time: formatTime(secondsRemaining) });
}
