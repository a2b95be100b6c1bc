import { type ReactNode, useEffect, useRef } from 'react';
import type { Prediction } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { Problem } from '../../shared/messages';
import { t } from '../../texts';
import '../../texts/en/result';
import type { PredictionActions } from './result-card';
import { UnsavedVideo } from './unsaved-video';

type Failed = Extract<Prediction, { status: 'failed' }>;

/** A failed prediction with its error and remedy. */
export function FailedCard(props: {
  prediction: Failed;
  focused: boolean;
  busy: boolean;
  gpuActions: ReactNode;
  actions: PredictionActions;
}) {
  const { prediction, focused, busy, gpuActions, actions } = props;
  const { id, parameters, error } = prediction;
  const cancelled = error.code === 'CANCELLED';
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focused) heading.current?.focus();
  }, [focused]);
  return (
    <section className="panel stage" aria-labelledby="failed-title">
      <h2 id="failed-title" ref={heading} tabIndex={-1}>
        {cancelled ? t('result.cancelled') : t('result.failed')}
      </h2>
      {/* A person asked for it. */}
      {cancelled ? (
        <p data-code={error.code}>{t('result.cancelledHint')}</p>
      ) : (
        <Problem error={error}>{gpuActions}</Problem>
      )}
      <UnsavedVideo prediction={prediction} />
      <p className="break">{parameters.prompt}</p>
      <div className="actions">
        <Button className="primary" disabled={busy} onClick={() => actions.onRunAgain(id)}>
          {t('result.runAgain')}
        </Button>
        <Button onClick={() => actions.onUseSettings(prediction)}>{t('result.useSettings')}</Button>
        <Button className="danger" onClick={() => actions.onDelete(id)}>
          {t('result.delete')}
        </Button>
      </div>
    </section>
  );
}
