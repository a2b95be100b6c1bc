import { useEffect, useRef } from 'react';
import type { Prediction } from '../../lib/contract/prediction';
import { Problem } from './problem';
import type { PredictionActions } from './result-card';

export type Failed = Extract<Prediction, { status: 'failed' }>;

/** A prediction that did not end well: why, and what to do. */
export function FailedCard(props: {
  prediction: Failed;
  focused: boolean;
  busy: boolean;
  actions: PredictionActions;
}) {
  const { prediction, focused, busy, actions } = props;
  const { id, parameters, error } = prediction;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focused) heading.current?.focus();
  }, [focused]);
  return (
    <section className="panel stage" aria-labelledby="failed-title">
      <h2 id="failed-title" ref={heading} tabIndex={-1}>
        {error.code === 'CANCELLED' ? 'Cancelled' : 'No video this time'}
      </h2>
      <Problem error={error} />
      <p className="prompt-text">{parameters.prompt}</p>
      <div className="actions">
        <button
          type="button"
          className="primary"
          disabled={busy}
          onClick={() => actions.onRunAgain(id)}
        >
          Run again
        </button>
        <button type="button" onClick={() => actions.onUseSettings(prediction)}>
          Use settings
        </button>
        <button type="button" className="danger" onClick={() => actions.onDelete(id)}>
          Delete
        </button>
      </div>
    </section>
  );
}
