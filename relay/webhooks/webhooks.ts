import { createHmac, randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { retryAfterMs } from '../../lib/contract';
import {
  ApiError,
  describeProgress,
  type WebhookBody,
  type WebhookEvent,
} from '../../lib/contract/v3';
import type { Keys } from '../access/keys';
import type { Config } from '../config';
import { describeInput, describeRecord, type Links } from '../files/links';
import { GuardError } from '../guard/addresses';
import type { Guard } from '../guard/guard';
import { workUntil } from '../loop';
import type { Metrics } from '../observe/metrics';
import type { DeliveryRow, deliveries, JobRow } from '../store/schema';
import type { Store } from '../store/store';
import { createOutbox, type DeliveryState, hostOf } from './outbox';

/** Deliveries are kept this many times as long as outputs, so that a missed one can be replayed later. */
const keptRetentions = 4;
/** Reading the outbox takes longer than this where the backlog is long, in milliseconds. */
const slowMs = 50;
/** Longest `Retry-After` that is followed, in seconds: 15 minutes. */
const longestRetryAfter = 900;
/** Attempts are spread by ±20 %, so that a receiver that was down does not get all at once. */
const jitter = 0.2;

/** The body of an event's webhook; null for a job whose status is not that of the event. */
function webhookBody(
  job: JobRow,
  event: WebhookEvent,
  links: WebhookDependencies['links'],
): WebhookBody | null {
  if (job.status === 'created' || (job.status === 'processing') === (event === 'completed')) {
    return null;
  }
  const { outputs, ...record } = describeRecord({ ...job, status: job.status }, links);
  return {
    ...record,
    input: describeInput(job.input, links),
    ...(job.status === 'completed' && { outputs }),
    // A submission without `webhook_events` gets only the result.
    ...(job.webhookEvents && { event }),
    ...(event === 'progress' && { progress: describeProgress(job) }),
  };
}

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
  const requestedDelay = retryAfter !== null && retryAfter <= longestRetryAfter ? retryAfter : 0;
  return { ...tried, status: 'due', delayMs: Math.round(Math.max(spread, requestedDelay) * 1000) };
}

/** How an attempt ended. */
export interface Attempt {
  /** HTTP status of the answer; null where there was none. */
  readonly status: number | null;
  /** The beginning of the answer, or why there was none, in one sentence. */
  readonly answer: string;
  /** Seconds, as the receiver asked for. */
  readonly retryAfter: number | null;
}

/** Most of an answer that is read, so that its connection can be used again; in bytes. */
const maxRead = 65_536;
/** Most of it that is kept, in bytes. */
const maxKept = 1024;

/**
 * Makes one attempt. It counts as received once the status has arrived: an answer that is long, slow or cut
 * off after that changes nothing.
 *
 * @param totalMs time limit of the attempt, in milliseconds
 * @param stop ends the attempt, which then is null and does not count
 * @throws what the look-up of the secret throws; nothing else
 */
async function sendWebhook(
  delivery: Pick<DeliveryRow, 'id' | 'owner' | 'url' | 'body'>,
  { guard, keys }: { guard: Guard; keys: Pick<Keys, 'webhookSecret'> },
  totalMs: number,
  stop: AbortSignal,
): Promise<Attempt | null> {
  const { owner, url, body } = delivery;
  const secret = await keys.webhookSecret(owner);
  try {
    const answer = await guard.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signatureHeaders(secret, delivery),
      },
      body,
      redirects: 0,
      // A long answer is cut here, and is no error.
      maxBytes: Number.POSITIVE_INFINITY,
      totalMs,
      signal: stop,
    });
    const retryMs = retryAfterMs(answer.headers['retry-after'] ?? null, Date.now());
    return {
      status: answer.status,
      answer: await beginningOf(answer.body),
      retryAfter: retryMs === null ? null : retryMs / 1000,
    };
  } catch (thrown) {
    if (stop.aborted) return null;
    const answer = thrown instanceof GuardError ? thrown.message : 'The webhook could not be sent.';
    return { status: null, answer, retryAfter: null };
  }
}

async function beginningOf(body: Readable): Promise<string> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      if (bytes < maxKept) kept.push(chunk.subarray(0, maxKept - bytes));
      bytes += chunk.byteLength;
      if (bytes >= maxRead) break;
    }
  } catch {
    // The part that arrived is kept.
  }
  // `stream` leaves out a character that was cut in two. PostgreSQL's text holds no NUL.
  const decoder = new TextDecoder();
  return decoder.decode(Buffer.concat(kept), { stream: true }).replaceAll('\0', '');
}

const prefix = 'whsec_';

/** The headers of both schemes (README.md). @param secret `whsec_` + base64 of 32 bytes */
function signatureHeaders(
  secret: string,
  { id, body }: Pick<DeliveryRow, 'id' | 'body'>,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(Date.now() / 1000);
  const key = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret;
  const message = `${id}.${timestamp}.${body}`;
  const hex = createHmac('sha256', key).update(message).digest('hex');
  const base64 = createHmac('sha256', Buffer.from(key, 'base64')).update(message).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v3,${hex}`,
    'svix-id': id,
    'svix-timestamp': String(timestamp),
    'svix-signature': `v1,${base64}`,
  };
}

/** Limits of delivering; durations in milliseconds. */
const defaultLimits = {
  /** Attempts at a time on this node. */
  concurrency: 64,
  /** Those for one host, so that a host without an answer cannot block all. */
  perHost: 8,
  totalMs: 15_000,
  /** When an attempt whose node has ended is repeated: longer than an attempt can take. */
  leaseMs: 30_000,
  /** Longest time between two reads of the outbox. */
  pollMs: 2000,
};
export type WebhookLimits = typeof defaultLimits;

interface WebhookDependencies {
  readonly store: Store;
  readonly config: Pick<
    Config,
    'KINORA_WEBHOOK_DELAYS' | 'KINORA_STOP_SECONDS' | 'KINORA_RETENTION_DAYS'
  >;
  readonly guard: Guard;
  readonly keys: Pick<Keys, 'webhookSecret'>;
  readonly links: Pick<Links, 'prediction' | 'output' | 'shown'>;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'delivery'>;
  readonly limits?: Partial<WebhookLimits>;
}

/** The outbox and its deliveries (README.md). */
export function createWebhooks(dependencies: WebhookDependencies) {
  const { store, config, guard, links, log, metrics } = dependencies;
  const { concurrency, perHost, totalMs, leaseMs, pollMs } = {
    ...defaultLimits,
    ...dependencies.limits,
  };
  const delays = config.KINORA_WEBHOOK_DELAYS;
  const firstDelay = delays[0] ?? 0;
  const outbox = createOutbox(store.db);

  /** One attempt from claim to record. Never rejects: a row that could not be written is retried. */
  async function attemptOf(row: DeliveryRow, stop: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    try {
      const attempt = await sendWebhook(row, dependencies, totalMs, stop);
      const seconds = (performance.now() - startedAt) / 1000;
      // Progress that did not arrive is out of date: the next one follows.
      const schedule = row.event === 'progress' ? delays.slice(0, 1) : delays;
      const state = attempt && afterAttempt(row, attempt, schedule, Math.random());
      const isSettled = await outbox.settle(row, state);
      const about = { delivery: row.id, prediction: row.jobId, attempt: state?.attempts };
      if (!isSettled) log.warn(about, 'a webhook was taken over while it was being sent');
      if (!isSettled || !state) return;
      const outcome = state.status === 'due' ? 'retry' : state.status;
      metrics.delivery(outcome, seconds);
      const level = outcome === 'delivered' ? 'info' : 'warn';
      const host = hostOf(row.url);
      log[level]({ ...about, host, status: state.lastStatus, seconds }, `webhook ${outcome}`);
    } catch (thrown) {
      log.error({ err: thrown, delivery: row.id }, 'a webhook attempt was lost');
    }
  }

  return {
    /** @throws ApiError `INVALID_WEBHOOK` */
    checkUrl(url: string): string {
      try {
        return guard.check(url).href;
      } catch (thrown) {
        if (!(thrown instanceof GuardError)) throw thrown;
        const details = [{ field: 'webhook', message: thrown.message }];
        throw new ApiError('INVALID_WEBHOOK', undefined, { details, cause: thrown });
      }
    },
    /**
     * The outbox row of an event, that of a terminal status for its transaction; null where it is not wanted. Its body
     * is what every attempt signs and sends, so that a retry sends the same as the first attempt.
     */
    outboxRow(job: JobRow, event: WebhookEvent): typeof deliveries.$inferInsert | null {
      if (job.webhookUrl === null) return null;
      if (!(job.webhookEvents ?? ['completed']).includes(event)) return null;
      const body = webhookBody(job, event, links);
      if (body === null) return null;
      return {
        id: `msg_${randomBytes(16).toString('hex')}`,
        jobId: job.id,
        event,
        owner: job.owner,
        url: job.webhookUrl,
        body: JSON.stringify(body),
        // Without a delay the database's own clock, which the deliveries are chosen by, sets it.
        ...(firstDelay > 0 && { nextAt: new Date(Date.now() + firstDelay * 1000) }),
      };
    },
    list: outbox.list,
    async replay(...delivery: Parameters<typeof outbox.replay>) {
      const record = await outbox.replay(...delivery);
      store.notify('deliveryDue', '');
      return record;
    },
    /**
     * Delivers what is due until the signal; then finishes what has begun, for `KINORA_STOP_SECONDS`. Any number of
     * nodes may run it on one database.
     */
    async run(signal: AbortSignal): Promise<void> {
      const hosts = new Map<string, number>();
      const interrupt = new AbortController();
      const stopMs = config.KINORA_STOP_SECONDS * 1000;
      signal.addEventListener('abort', () => setTimeout(() => interrupt.abort(), stopMs).unref());
      const attempt = async (row: DeliveryRow) => {
        const host = hostOf(row.url);
        const count = (change: number) => hosts.set(host, (hosts.get(host) ?? 0) + change);
        count(1);
        await attemptOf(row, interrupt.signal);
        if (count(-1).get(host) === 0) hosts.delete(host);
      };
      const listen = (onNews: () => void) => store.listen('deliveryDue', onNews);
      await workUntil(signal, { listen, log }, async (begin, underWay) => {
        const startedAt = performance.now();
        try {
          const limit = concurrency - underWay;
          if (limit <= 0) return pollMs;
          const rows = await outbox.claimDue({ limit, leaseMs, perHost, underWay: hosts });
          for (const row of rows) begin(attempt(row));
          // Behind the rows of a host that now has its share there may be others.
          if (rows.length > 0) return 0;
          return Math.min((await outbox.untilNextDue()) ?? pollMs, pollMs);
        } finally {
          // Attempts and jobs end often: reading takes at most half of the time.
          const tookMs = Math.min(performance.now() - startedAt, pollMs);
          if (tookMs > slowMs) await delay(tookMs, undefined, { signal }).catch(() => undefined);
        }
      });
    },
    /** Removes deliveries that ended long ago, a bounded number per call. @throws ApiError `STORAGE_DOWN` */
    sweep: (): Promise<void> =>
      outbox.removeFinished(config.KINORA_RETENTION_DAYS * keptRetentions),
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;
