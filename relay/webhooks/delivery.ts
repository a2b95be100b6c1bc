import type { DeliveryRow } from '../store/schema';

/** How an attempt ended. */
export interface Attempt {
  /** HTTP status of the answer; null where there was none. */
  readonly status: number | null;
  /** The beginning of the answer, or why there was none, in one sentence. */
  readonly answer: string;
  /** Seconds, as the receiver asked for. */
  readonly retryAfter: number | null;
}

/** The columns of a delivery that an attempt changes. */
export interface DeliveryState
  extends Pick<DeliveryRow, 'status' | 'attempts' | 'lastStatus' | 'lastAnswer'> {
  /** Milliseconds from now until the next attempt; null when there is none to come. */
  readonly delayMs: number | null;
}

/** Longest `Retry-After` that is followed, in seconds: 15 minutes. */
const longestRetryAfter = 900;
/** Attempts are spread by ±20 %, so that a receiver that was down does not get all at once. */
const jitter = 0.2;

/**
 * The state of a delivery after an attempt. Only 2xx is delivered; 410 means that the receiver no longer exists, and
 * ends it at once; everything else, also 3xx, is repeated while the schedule has attempts left.
 *
 * @param row `attempts` counts every attempt there ever was, `attemptsBefore` those before the latest replay
 * @param delays seconds before each attempt of a round
 * @param random from 0 up to 1, for the jitter
 */
export function afterAttempt(
  { attempts, attemptsBefore }: Pick<DeliveryRow, 'attempts' | 'attemptsBefore'>,
  { status, answer, retryAfter }: Attempt,
  delays: readonly number[],
  random: number,
): DeliveryState {
  const tried = { attempts: attempts + 1, lastStatus: status, lastAnswer: answer };
  if (status !== null && status >= 200 && status <= 299) {
    return { ...tried, status: 'delivered', delayMs: null };
  }
  const delay = delays[tried.attempts - attemptsBefore];
  if (delay === undefined || status === 410) {
    return { ...tried, status: 'exhausted', delayMs: null };
  }
  const spread = delay * (1 + jitter * (2 * random - 1));
  // Never sooner than scheduled.
  const asked = retryAfter !== null && retryAfter <= longestRetryAfter ? retryAfter : 0;
  return { ...tried, status: 'due', delayMs: Math.round(Math.max(spread, asked) * 1000) };
}
