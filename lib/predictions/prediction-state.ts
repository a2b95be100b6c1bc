import {
  type Backend,
  type CheckpointInfo,
  type Created,
  type ErrorRecord,
  type GenerationResult,
  isResumable,
  type Prediction,
  resolveSeed,
  type Safety,
} from '../contract';

/** The events of a prediction; times are ISO 8601, UTC. */
export type PredictionEvent =
  /** Its turn has come. @param seed what is used where a random one was asked for */
  | { readonly type: 'started'; readonly at: string; readonly seed: number }
  /** It gets another place among those that wait. */
  | { readonly type: 'moved'; readonly position: number }
  /** Whether the queue pauses when it has run. */
  | { readonly type: 'pauseAfter'; readonly on: boolean }
  /** The checkpoint from which the run can be resumed; null if it cannot any more. */
  | { readonly type: 'checkpointed'; readonly checkpoint: CheckpointInfo | null }
  /** The run ended by no fault of the request: it can be resumed if it has a checkpoint. */
  | { readonly type: 'interrupted'; readonly at: string; readonly error: ErrorRecord }
  /** A run goes on, perhaps on another backend. */
  | { readonly type: 'resumed'; readonly backend?: Backend }
  | { readonly type: 'completed'; readonly at: string; readonly result: GenerationResult }
  /** The video was decoded again, in full quality. */
  | { readonly type: 'refined'; readonly result: GenerationResult }
  | { readonly type: 'checked'; readonly safety: Safety }
  /** The user marks it, or removes the mark. */
  | { readonly type: 'marked'; readonly favourite: boolean }
  /** The user adds a tag, or removes it. */
  | { readonly type: 'tagged'; readonly tag: string; readonly on: boolean }
  | { readonly type: 'failed'; readonly at: string; readonly error: ErrorRecord };

/**
 * The state machine of a prediction: `created → processing → completed | failed`. A run with a checkpoint
 * becomes `interrupted` instead of `failed` where it can be resumed, and `resumed` makes it `processing` again.
 * A final state does not change, but `checked` replaces the safety record of a completed prediction, and
 * `refined` its result. `marked` and `tagged` are valid in every state.
 *
 * @returns the same object if the event is not valid in the present state
 */
export function advancePrediction(prediction: Prediction, event: PredictionEvent): Prediction {
  const { id, model, profile, backend, parameters, options, createdAt } = prediction;
  const { favourite, tags, continues } = prediction;
  const base = {
    id,
    model,
    profile,
    backend,
    parameters,
    options,
    createdAt,
    ...(favourite && { favourite }),
    ...(tags && { tags }),
    ...(continues !== undefined && { continues }),
  };
  switch (event.type) {
    case 'started':
      if (prediction.status !== 'created') return prediction;
      return {
        ...base,
        parameters: { ...parameters, seed: event.seed },
        createdAt: event.at,
        status: 'processing',
      };
    case 'moved':
      if (prediction.status !== 'created') return prediction;
      return { ...prediction, position: event.position };
    case 'pauseAfter': {
      if (prediction.status !== 'created') return prediction;
      const { pauseAfter: _, ...rest } = prediction;
      return event.on ? { ...rest, pauseAfter: true } : rest;
    }
    case 'checkpointed':
      if (prediction.status !== 'processing') return prediction;
      return {
        ...base,
        status: 'processing',
        ...(event.checkpoint && { checkpoint: event.checkpoint }),
      };
    case 'interrupted': {
      if (prediction.status !== 'processing') return prediction;
      const { at, error } = event;
      const { checkpoint } = prediction;
      if (!checkpoint) return { ...base, status: 'failed', completedAt: at, error };
      return { ...base, status: 'interrupted', interruptedAt: at, error, checkpoint };
    }
    case 'resumed': {
      if (prediction.status !== 'interrupted') return prediction;
      const { checkpoint } = prediction;
      return { ...base, backend: event.backend ?? backend, status: 'processing', checkpoint };
    }
    case 'completed':
      if (prediction.status !== 'processing') return prediction;
      return { ...base, status: 'completed', completedAt: event.at, result: event.result };
    case 'checked':
      if (prediction.status !== 'completed') return prediction;
      return { ...prediction, result: { ...prediction.result, safety: event.safety } };
    case 'refined':
      if (prediction.status !== 'completed') return prediction;
      return { ...prediction, result: event.result };
    case 'marked': {
      const { favourite: _, ...rest } = prediction;
      return event.favourite ? { ...rest, favourite: true } : rest;
    }
    case 'tagged': {
      const { tags: _, ...rest } = prediction;
      const others = (tags ?? []).filter((tag) => tag !== event.tag);
      const after = event.on ? [...others, event.tag] : others;
      return after.length > 0 ? { ...rest, tags: after } : rest;
    }
    case 'failed':
      if (prediction.status !== 'processing') return prediction;
      return { ...base, status: 'failed', completedAt: event.at, error: event.error };
  }
}

/** Whether its run has ended, or was interrupted. */
export function isAtRest(prediction: Prediction): boolean {
  return prediction.status !== 'created' && prediction.status !== 'processing';
}

/** Whether a person has ended it. */
export function isCancelled(prediction: Prediction): boolean {
  return prediction.status === 'failed' && prediction.error.code === 'CANCELLED';
}

/** The event with which the turn of a request has come; a random seed is chosen now. */
export function starting({ parameters }: Created): PredictionEvent {
  return { type: 'started', at: new Date().toISOString(), seed: resolveSeed(parameters.seed) };
}

/** The event that ends a run with an error: `interrupted` where it may be resumed, else `failed`. */
export function endingWith(error: ErrorRecord, at: string): PredictionEvent {
  return { type: isResumable(error.code) ? 'interrupted' : 'failed', at, error };
}
