import {
  isQuickCheck,
  type KinoraError,
  type Prediction,
  toKinoraError,
} from '../../../lib/contract';
import { getRunner } from '../../runner';
import { showOpened } from '../../shared/browser';
import { Button } from '../../shared/button';
import { CheckerDownload, useChecker } from '../../shared/checker';
import { Problem } from '../../shared/messages';
import { verdictText } from '../../shared/safety-text';
import { useTask } from '../../shared/task';
import { t } from '../../texts';
import '../../texts/en/run';

/** What the safety checker says of a video, and the check of one that has no verdict. */
export function Verdict(props: {
  prediction: Extract<Prediction, { status: 'completed' }>;
  /** A generation is running: it has the GPU. */
  busy: boolean;
  /** The check has deleted the video: its prompt names a child, and it is flagged. */
  onDeleted: (error: KinoraError) => void;
}) {
  const { prediction, busy, onDeleted } = props;
  const { id, model, result } = prediction;
  const { safety } = result;
  const checker = useChecker(model);
  const task = useTask();

  const check = () =>
    task.run(async (signal) => {
      try {
        await getRunner().check(id, signal);
      } catch (thrown) {
        const failure = toKinoraError(thrown);
        if (failure.code !== 'PROMPT_REFUSED') throw failure;
        onDeleted(failure);
      }
    });

  // The larger checker overrules the quick one, and judges what none has judged.
  const isQuick = safety !== undefined && isQuickCheck(safety);
  const isVerdict = safety?.status === 'clear' || safety?.status === 'flagged';
  const checkable = !isVerdict || (isQuick && checker.status === 'ready');
  const offered = isQuick || (safety?.status === 'unverified' && safety.reason !== 'failed');
  const status = safety?.status ?? 'off';
  return (
    <section className="verdict stack" aria-label={t('run.safetyCheck')}>
      <details onToggle={showOpened}>
        <summary className="badge row min-0 muted text-m" data-state={states[status]}>
          <span role="status">
            {t('run.verdictBadge', { status: safety?.reason === 'failed' ? 'failed' : status })}
          </span>
        </summary>
        <p>{verdictText(safety)}</p>
        {!task.busy && checkable && (
          <Button disabled={busy} onClick={check}>
            {t('run.checkNow')}
          </Button>
        )}
        {!task.busy && offered && (
          <CheckerDownload checker={checker} then={t('run.andCheck')} onReady={check} />
        )}
      </details>
      {task.problem && <Problem error={task.problem} />}
      {task.busy && (
        <>
          <progress aria-label={t('run.checking')} />
          <div className="actions">
            <Button onClick={task.stop}>{t('run.cancelCheck')}</Button>
          </div>
        </>
      )}
    </section>
  );
}

/** The colours of the badge. */
const states = { clear: 'good', flagged: 'bad', unverified: 'slow', off: undefined } as const;
