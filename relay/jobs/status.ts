import { type PredictionCode, type PredictionStatus, predictionCodes } from '../../lib/contract/v3';

/** The state of a job that decides its next state. */
export interface JobState {
  readonly status: PredictionStatus;
  /** Attempts so far, the running one included. */
  readonly attempt: number;
  /** How often a worker handed it back. */
  readonly releases: number;
}

/** Whether a job has ended: its status never changes again. */
export function isTerminal({ status }: Pick<JobState, 'status'>): boolean {
  return status === 'completed' || status === 'failed';
}

/** Events of a job. */
export type JobEvent =
  | { readonly type: 'completed' }
  /** The worker says that it cannot; `message` is its sentence. */
  | {
      readonly type: 'failed';
      readonly message: string;
      readonly retryable: boolean;
      /** Code of the prediction, should this be its end: {@link failureCode}. */
      readonly code: PredictionCode;
    }
  | { readonly type: 'released' }
  | { readonly type: 'cancelled' }
  /** No heartbeat came in time. */
  | { readonly type: 'lease-expired' }
  /** The attempt took longer than one may; `seconds` is how long that is. */
  | { readonly type: 'deadline-passed'; readonly seconds: number }
  /** Image or adapters could not be had; `message` says which and why. */
  | { readonly type: 'intake-failed'; readonly message: string };

/** Its next state. `error` and `code` are for the caller of the API. */
export interface JobStep extends JobState {
  readonly error: string;
  readonly code: PredictionCode | null;
}

/**
 * A worker may hand a job back this often without using up an attempt: tabs are closed all the time.
 * From then on it counts, so that a job which every worker hands back ends one day.
 */
export const freeReleases = 20;

/** A worker's codes of failures that the request is the cause of, or what it names. */
const failureCodes: readonly (readonly [RegExp, PredictionCode])[] = [
  [/^PROMPT_REFUSED$/, predictionCodes.contentModeration],
  [/^LORA_(INVALID|WRONG_BASE)$/, predictionCodes.invalidParameter],
  [/^(LORA_MISSING$|HUB_|IMAGE_)/, predictionCodes.mediaUnavailable],
];

/**
 * The code of a worker's failure for the caller of the API.
 *
 * @param code stable identifier of the worker's error, such as `LORA_WRONG_BASE`
 */
export function failureCode(code: string): PredictionCode {
  const known = failureCodes.find(([pattern]) => pattern.test(code));
  return known?.[1] ?? predictionCodes.executionFailed;
}

/** Message of a cancelled job: the API has four states. */
const cancelledError = 'cancelled by user';

/**
 * The life of a job after a claim has made it `processing`: completed | failed, or `created` again when a lease
 * is lost or handed back and an attempt is left. A terminal status never changes.
 *
 * @param maxAttempts attempts that a job may have
 * @returns what it becomes; null where the event does not fit its status, and nothing may change
 */
export function nextStep(state: JobState, event: JobEvent, maxAttempts: number): JobStep | null {
  const { status, attempt, releases } = state;
  if (isTerminal(state)) return null;
  const counts = { attempt, releases };
  const fail = (error: string, code: PredictionCode): JobStep => {
    return { ...counts, status: 'failed', error, code };
  };
  const waiting = { ...counts, status: 'created', error: '', code: null } as const;

  if (event.type === 'cancelled') return fail(cancelledError, predictionCodes.cancelled);
  if (status === 'created') {
    const isLost = event.type === 'intake-failed';
    return isLost ? fail(event.message, predictionCodes.mediaUnavailable) : null;
  }

  const last = attempt >= maxAttempts;
  switch (event.type) {
    case 'completed':
      return { ...waiting, status: 'completed' };
    case 'failed':
      if (event.retryable && !last) return waiting;
      return fail(
        event.retryable && attempt > 1
          ? `All ${attempt} attempts failed; the last one said: ${event.message}`
          : event.message,
        event.code,
      );
    case 'released': {
      const counted = { ...waiting, releases: releases + 1 };
      if (releases < freeReleases) return { ...counted, attempt: Math.max(0, attempt - 1) };
      if (!last) return counted;
      const sentence = `No worker kept the task: it was handed back ${counted.releases} times.`;
      return { ...fail(sentence, predictionCodes.unavailable), releases: counted.releases };
    }
    case 'lease-expired':
      if (!last) return waiting;
      return fail(
        attempt > 1
          ? `The task ended without a result after ${attempt} attempts: the last worker was lost.`
          : 'The task ended without a result: its worker was lost.',
        predictionCodes.unavailable,
      );
    case 'deadline-passed':
      if (!last) return waiting;
      return fail(
        `The video was not ready within ${duration(event.seconds)}` +
          `${attempt > 1 ? `, in the last of ${attempt} attempts` : ''}.`,
        predictionCodes.timeout,
      );
    default:
      return null;
  }
}

/** "3 hours", "90 seconds": the largest unit that is whole. */
function duration(seconds: number): string {
  const units = [
    ['hour', 3600],
    ['minute', 60],
    ['second', 1],
  ] as const;
  const [unit, size] = units.find(([, length]) => seconds % length === 0) ?? ['second', 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
