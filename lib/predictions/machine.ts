import type { ErrorRecord } from '../contract/errors';
import type { Prediction } from '../contract/prediction';
import type { GenerationResult } from '../contract/progress';

/** Everything that can happen to a prediction; times are ISO 8601, UTC. */
export type PredictionEvent =
  | { readonly type: 'started'; readonly at: string }
  | { readonly type: 'completed'; readonly at: string; readonly result: GenerationResult }
  | { readonly type: 'failed'; readonly at: string; readonly error: ErrorRecord };

/**
 * The life of a prediction: `created → processing → completed | failed`.
 *
 * Pure. A `created` prediction may also fail (cancelled while it waited for the GPU). An event that is
 * not legal in the present state returns the very same object, so a terminal state never changes.
 */
export function advance(prediction: Prediction, event: PredictionEvent): Prediction {
  const { id, model, profile, backend, parameters, createdAt } = prediction;
  const kept = { id, model, backend, parameters, createdAt };
  const base = profile ? { ...kept, profile } : kept;
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
    case 'failed':
      if (isTerminal(prediction)) return prediction;
      return { ...base, status: 'failed', completedAt: event.at, error: event.error };
  }
}

/** Whether nothing can happen to a prediction any more. */
export function isTerminal(prediction: Prediction): boolean {
  return prediction.status === 'completed' || prediction.status === 'failed';
}
