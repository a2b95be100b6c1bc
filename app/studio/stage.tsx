import type { Prediction } from '../../lib/contract/prediction';
import type { RunState } from '../../lib/predictions/run-state';
import { EmptyStage } from './empty-stage';
import { FailedCard } from './failed-card';
import { ProgressPanel } from './progress-panel';
import { type PredictionActions, ResultCard } from './result-card';

/** The main place of the page: the run at work, a past prediction, or a welcome. */
export function Stage(props: {
  run: RunState;
  shown: Prediction | undefined;
  focused: boolean;
  /** True until the predictions are read. */
  loading: boolean;
  actions: PredictionActions;
  onSample: () => void;
}) {
  const { run, shown, focused, loading, actions, onSample } = props;
  const busy = run.status !== 'idle';
  // During a run the stage is the run's, and below it stands only what was picked meanwhile.
  const past = busy && !focused ? undefined : shown;
  return (
    <>
      {busy && <ProgressPanel run={run} />}
      {past?.status === 'completed' && (
        <ResultCard key={past.id} prediction={past} {...{ focused, busy, actions }} />
      )}
      {past?.status === 'failed' && (
        <FailedCard key={past.id} prediction={past} {...{ focused, busy, actions }} />
      )}
      {!busy && !past && (loading ? <LoadingStage /> : <EmptyStage onSample={onSample} />)}
    </>
  );
}

/** Holds the place for the few milliseconds in which the database answers. */
function LoadingStage() {
  return <div className="panel stage" />;
}
