import { useEffect, useRef } from 'react';
import type { ErrorCode, ErrorRecord } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { Problem, ProblemAlert } from '../../shared/messages';
import { t } from '../../texts';
import '../../texts/en/run';
import type { PredictionActions } from '../result/result-card';
import { UnsavedVideo } from '../result/unsaved-video';
import {
  finishText,
  type Interrupted,
  interruptionReason,
  interruptionTitle,
} from './interruption';
import { RunPictures } from './run-pictures';

/** Errors after which the GPU may be gone for good. */
const withoutGpu: readonly ErrorCode[] = ['DEVICE_LOST', 'WEBGPU_MISSING', 'ADAPTER_MISSING'];

/** A run that ended before its time, with how far it is and what can be done with it. */
export function InterruptedCard(props: {
  prediction: Interrupted;
  /** Moves the focus here, because the run was just interrupted or selected. */
  focused: boolean;
  /** Scrolls here, because the page has just found the run. */
  justFound: boolean;
  busy: boolean;
  /** Why the last attempt to go on with it could not begin. */
  problem: ErrorRecord | null;
  /** Whether the CPU computes this model in reasonable time. */
  cpu: boolean;
  actions: PredictionActions;
}) {
  const { prediction, focused, justFound, busy, problem, cpu, actions } = props;
  const { id, parameters, checkpoint, error } = prediction;
  const { clip, clips, step, steps } = checkpoint;
  const finish = finishText(prediction);
  const panel = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focused) heading.current?.focus();
    // On a phone the card is far below the top of the page.
    else if (justFound) panel.current?.scrollIntoView({ block: 'nearest' });
  }, [focused, justFound]);
  return (
    <section ref={panel} className="panel stage interrupted" aria-labelledby="interrupted-title">
      {/* Where those of the run were. */}
      <div className="split">
        <h2 id="interrupted-title" ref={heading} tabIndex={-1}>
          {interruptionTitle(prediction)}
        </h2>
        <div className="actions">
          <Button className="primary" disabled={busy} onClick={() => actions.onResume(id)}>
            {t('run.resume')}
          </Button>
          {cpu && withoutGpu.includes(error.code) && (
            <Button disabled={busy} onClick={() => actions.onResume(id, 'wasm')}>
              {t('run.resumeOnCpu')}
            </Button>
          )}
          {finish && (
            <Button disabled={busy} onClick={() => actions.onFinish(id)}>
              {t('run.finishEarly')}
            </Button>
          )}
          <Button onClick={() => actions.onUseSettings(prediction)}>{t('run.useSettings')}</Button>
          <Button className="danger" onClick={() => actions.onDelete(id)}>
            {t('run.delete')}
          </Button>
        </div>
      </div>
      <div className="screen preview-place" data-size={parameters.size}>
        <RunPictures prediction={prediction} />
      </div>
      <progress aria-label={t('run.stepsDone')} value={clip * steps + step} max={clips * steps} />
      <Problem error={interruptionReason(prediction)} />
      <UnsavedVideo prediction={prediction} />
      <ProblemAlert error={problem} />
      <p className="break">{parameters.prompt}</p>
      {finish && <p className="field-hint">{finish}</p>}
    </section>
  );
}
