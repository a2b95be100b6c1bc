import { lazy, memo, type ReactNode, Suspense, useEffect } from 'react';
import { type Backend, isBundled, type Prediction, type Size } from '../../lib/contract';
import type { RunState } from '../../lib/predictions/run-state';
import { noteVideos } from '../shared/expected-image';
import type { GpuState } from '../shared/gpu';
import type { ModelList } from '../shared/use-models';
import type { ChosenImage } from './form/form-state';
import { HeroPlace } from './hero';
import type { PredictionActions } from './result/result-card';
import type { RunProblem } from './run/use-generate';

// None of them is shown before the database is read; what they need is not to delay the form.
const ResultCard = lazy(async () => ({
  default: (await import('./result/result-card')).ResultCard,
}));
const ProgressPanel = lazy(async () => ({
  default: (await import('./run/progress-panel')).ProgressPanel,
}));
const InterruptedCard = lazy(async () => ({
  default: (await import('./run/interrupted-card')).InterruptedCard,
}));
const FailedCard = lazy(async () => ({
  default: (await import('./result/failed-card')).FailedCard,
}));
const FirstRun = lazy(async () => ({ default: (await import('./first-run')).FirstRun }));

/** The main area of the page: the running generation, a past prediction, or an introduction. */
export const Stage = memo(function Stage(props: {
  run: RunState;
  shown: Prediction | undefined;
  focused: boolean;
  /** True until the predictions are loaded. */
  loading: boolean;
  /** Why a prediction could not be gone on with or refined, and which. */
  problem: RunProblem | null;
  /** Whether the page has found a run of a page that is gone. */
  justFound: boolean;
  /** For a run that failed of the GPU. */
  gpuActions: ReactNode;
  actions: PredictionActions;
  gpu: GpuState;
  backend: Backend;
  models: ModelList;
  picture: ChosenImage | null;
  size: Size;
  onSample: () => void;
}) {
  const { run, shown, focused, loading, justFound, gpuActions, actions } = props;
  const busy = run.status !== 'idle';
  // A running generation comes first; below it, only a prediction that the user has selected.
  const past = busy && !focused ? undefined : shown;
  const problem = props.problem && props.problem.id === past?.id ? props.problem.error : null;
  const introduces = !busy && !past;
  useEffect(() => {
    if (!loading) noteVideos(!introduces);
  }, [loading, introduces]);
  return (
    <Suspense fallback={<LoadingStage />}>
      {busy && <ProgressPanel run={run} />}
      {past?.status === 'completed' && (
        <ResultCard
          key={past.id}
          prediction={past}
          focused={focused}
          busy={busy}
          problem={problem}
          actions={actions}
        />
      )}
      {past?.status === 'interrupted' && (
        <InterruptedCard
          key={past.id}
          prediction={past}
          cpu={isCpuEnough(props.models, past.model)}
          focused={focused}
          justFound={justFound}
          busy={busy}
          problem={problem}
          actions={actions}
        />
      )}
      {past?.status === 'failed' && (
        <FailedCard
          key={past.id}
          prediction={past}
          focused={focused}
          busy={busy}
          gpuActions={gpuActions}
          actions={actions}
        />
      )}
      {introduces && (loading ? <LoadingStage /> : <FirstRun {...props} />)}
    </Suspense>
  );
});

/** Whether the CPU computes a model in reasonable time: the bundled ones are made for it. */
export function isCpuEnough(list: ModelList, id: string): boolean {
  const models = list.status === 'ready' ? list.models : [];
  return models.some(({ manifest }) => manifest.id === id && isBundled(manifest));
}

/**
 * A placeholder while the database is read, with the size of what is shown where there is no video. Its
 * picture is in the page from the start, so that the browser fetches it before the scripts have run.
 */
function LoadingStage() {
  return (
    <div className="panel stage loading" aria-hidden="true">
      <HeroPlace />
    </div>
  );
}
