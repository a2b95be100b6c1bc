import type { ErrorRecord } from '../contract/errors';
import type { Prediction } from '../contract/prediction';
import type { GenerationResult } from '../contract/progress';
import type { Safety } from '../contract/safety';

/** The events of a prediction; times are ISO 8601, UTC. */
export type PredictionEvent =
  | { readonly type: 'started'; readonly at: string }
  | { readonly type: 'completed'; readonly at: string; readonly result: GenerationResult }
  | { readonly type: 'checked'; readonly safety: Safety }
  | { readonly type: 'failed'; readonly at: string; readonly error: ErrorRecord };

/**
 * The state machine of a prediction: `created → processing → completed | failed`, and
 * `created → failed` if it was cancelled while it waited for the GPU. A final state does not change, but
 * `checked` replaces the safety record of a completed prediction.
 *
 * @returns the same object if the event is not valid in the present state
 */
export function advancePrediction(prediction: Prediction, event: PredictionEvent): Prediction {
  const { id, model, profile, backend, parameters, createdAt } = prediction;
  const { safetyChecker, promptOptimizer, decoder, cache } = prediction;
  const base = {
    ...{ id, model, profile, backend, parameters, createdAt },
    ...(safetyChecker !== undefined && { safetyChecker }),
    ...(promptOptimizer !== undefined && { promptOptimizer }),
    ...(decoder !== undefined && { decoder }),
    ...(cache !== undefined && { cache }),
  };
  switch (event.type) {
    case 'started':
      if (prediction.status !== 'created') return prediction;
      return { ...base, status: 'processing', startedAt: event.at };
    case 'completed':
      if (prediction.status !== 'processing') return prediction;
      return {
        ...base,
        status: 'completed',
        startedAt: prediction.startedAt,
        completedAt: event.at,
        result: event.result,
      };
    case 'checked':
      if (prediction.status !== 'completed') return prediction;
      return { ...prediction, result: { ...prediction.result, safety: event.safety } };
    case 'failed':
      if (isTerminal(prediction)) return prediction;
      return { ...base, status: 'failed', completedAt: event.at, error: event.error };
  }
}

/** Whether the prediction has ended and cannot change any more. */
export function isTerminal(prediction: Prediction): boolean {
  return prediction.status === 'completed' || prediction.status === 'failed';
}
