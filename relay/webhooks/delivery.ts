import type { DeliveryRow } from '../store/schema';

/** What happened to a delivery. */
export type DeliveryEvent =
  /** The receiver answered. */
  | {
      readonly type: 'answered';
      readonly status: number;
      /** The beginning of its answer. */
      readonly answer: string;
      /** Seconds, as it asked for. */
      readonly retryAfter: number | null;
    }
  /** The receiver did not answer; `reason` is one sentence. */
  | { readonly type: 'unanswered'; readonly reason: string }
  /** This server stops: the attempt does not count and may be made again at once. */
  | { readonly type: 'interrupted' }
  /** It was requested again, with a new set of attempts. */
  | { readonly type: 'replayed' };

/** The columns of a delivery that change. */
export interface DeliveryState
  extends Pick<
    DeliveryRow,
    'status' | 'attempts' | 'attemptsBefore' | 'lastStatus' | 'lastAnswer'
  > {
  /** Milliseconds from now until the next attempt; null when there is none to come. */
  readonly delayMs: number | null;
}

/**
 * The next state of a delivery.
 *
 * `attempts` counts every finished attempt there ever was; a replay begins a new round by remembering
 * them in `attemptsBefore`. Only 2xx is delivered; 410 means
 * that the receiver no longer exists, and ends it at once; everything else, also 3xx, is repeated while
 * the schedule has attempts left.
 *
 * @param delays seconds before each attempt of a round
 * @param random from 0 up to 1, for the jitter
 */
export function reduceDelivery(
  state: Omit<DeliveryState, 'delayMs'>,
  event: DeliveryEvent,
  delays: readonly number[],
  random: number,
): DeliveryState {
  const { status, attempts, attemptsBefore, lastStatus, lastAnswer } = state;
  const before = { status, attempts, attemptsBefore, lastStatus, lastAnswer };
  if (event.type === 'replayed') {
    return { ...before, status: 'due', attemptsBefore: attempts, delayMs: 0 };
  }
  if (event.type === 'interrupted') return { ...before, delayMs: 0 };
  const tried = {
    ...before,
    attempts: attempts + 1,
    lastStatus: event.type === 'answered' ? event.status : null,
    lastAnswer: event.type === 'answered' ? event.answer : event.reason,
  };
  if (event.type === 'answered' && event.status >= 200 && event.status <= 299) {
    return { ...tried, status: 'delivered', delayMs: null };
  }
  const isGone = event.type === 'answered' && event.status === 410;
  const retryAfter = event.type === 'answered' ? event.retryAfter : null;
  const delayMs = isGone
    ? null
    : retryDelay(delays, tried.attempts - attemptsBefore, retryAfter, random);
  return { ...tried, status: delayMs === null ? 'exhausted' : 'due', delayMs };
}

/** Longest `Retry-After` that is followed, in seconds: 15 minutes. */
const longestRetryAfter = 900;
/** Attempts are spread by ±20 %, so that a receiver that was down does not get all at once. */
const jitter = 0.2;

/**
 * How long to wait before the next attempt, in milliseconds; null when there is none left.
 *
 * @param delays seconds before each attempt, the first too
 * @param failed attempts of this round so far, at least 1
 * @param retryAfter what the receiver asked for, in seconds; never makes it sooner than scheduled
 * @param random from 0 up to 1
 */
function retryDelay(
  delays: readonly number[],
  failed: number,
  retryAfter: number | null,
  random: number,
): number | null {
  const delay = delays[failed];
  if (delay === undefined) return null;
  const spread = delay * (1 + jitter * (2 * random - 1));
  const asked = retryAfter !== null && retryAfter <= longestRetryAfter ? retryAfter : 0;
  return Math.round(Math.max(spread, asked) * 1000);
}
