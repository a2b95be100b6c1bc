import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import {
  ApiError,
  type DeliveryRecord,
  describeContents,
  describeProgress,
  type WebhookBody,
  type WebhookEvent,
} from '../../lib/contract/v3';
import type { Keys } from '../access/keys';
import type { Config } from '../config';
import type { Links } from '../files/links';
import { GuardError } from '../guard/errors';
import type { Guard } from '../guard/guard';
import type { OutboxRow } from '../jobs/context';
import type { Metrics } from '../observe/metrics';
import { type Store, withStorageErrors } from '../store';
import type { JobRow } from '../store/schema';
import { deliverUntil, type LoopDependencies, type LoopLimits } from './loop';
import { createOutbox } from './outbox';
import { sendWebhook } from './send';

/** Deliveries are kept this many times as long as outputs, so that a missed one can be replayed later. */
const keptRetentions = 4;

/** The body of an event's webhook; null for a job whose status is not that of the event. */
function webhookBody(
  job: JobRow,
  event: WebhookEvent,
  links: WebhookDependencies['links'],
): WebhookBody | null {
  if (job.status === 'created' || (job.status === 'processing') === (event === 'completed')) {
    return null;
  }
  const output = job.status === 'completed' ? links.output(job) : null;
  const outputs = output === null ? [] : [output];
  return {
    id: job.id,
    model: job.model,
    input: { ...job.input },
    ...(job.status === 'completed' && { outputs }),
    urls: { get: links.prediction(job.id) },
    ...describeContents(job, outputs),
    status: job.status,
    created_at: job.createdAt.toISOString(),
    error: job.error,
    ...(job.code !== null && { code: job.code }),
    seed: job.seed,
    // Who asked for nothing gets nothing more than the result.
    ...(job.webhookEvents && { event }),
    ...(event === 'progress' && { progress: describeProgress(job) }),
  };
}

/**
 * The outbox row of an event, that of a terminal status for its transaction. Its body is what every attempt signs and
 * sends, so that a retry sends the same as the first attempt.
 *
 * @param firstDelay seconds before the first attempt
 */
function createOutboxRow(links: WebhookDependencies['links'], firstDelay: number): OutboxRow {
  return (job, event) => {
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
  };
}

/** Limits of delivering; durations in milliseconds. */
export type WebhookLimits = LoopLimits & { readonly totalMs: number };

/** What {@link createWebhooks} works with. */
export interface WebhookDependencies {
  readonly store: Store;
  readonly config: Pick<
    Config,
    'KINORA_WEBHOOK_DELAYS' | 'KINORA_STOP_SECONDS' | 'KINORA_RETENTION_DAYS'
  >;
  readonly guard: Guard;
  readonly keys: Pick<Keys, 'webhookSecret'>;
  readonly links: Pick<Links, 'prediction' | 'output'>;
  readonly log: Logger;
  readonly metrics: Pick<Metrics, 'delivery'>;
  /** Each limit as in README.md where absent. */
  readonly limits?: Partial<WebhookLimits>;
}

/**
 * The outbox and its deliveries (README.md). The row of a webhook is written in the transaction of the
 * terminal status; the loop takes it from there, so that a webhook may come twice but is never lost.
 */
export function createWebhooks({
  store,
  config,
  guard,
  keys,
  links,
  log,
  metrics,
  ...options
}: WebhookDependencies) {
  const delays = config.KINORA_WEBHOOK_DELAYS;
  const limits: WebhookLimits = {
    concurrency: 64,
    perHost: 8,
    totalMs: 15_000,
    leaseMs: 30_000,
    pollMs: 2000,
    stopMs: config.KINORA_STOP_SECONDS * 1000,
    ...options.limits,
  };
  const outbox = withStorageErrors(createOutbox(store.db));
  const send: LoopDependencies['send'] = (delivery, stop) =>
    sendWebhook(delivery, { guard, keys }, limits.totalMs, stop);
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
    outboxRow: createOutboxRow(links, delays[0] ?? 0),
    /** Newest first; of every owner where none is named. */
    list: outbox.list,
    /** @throws ApiError `NOT_FOUND` */
    async replay(id: string, owner?: string): Promise<DeliveryRecord> {
      const record = await outbox.replay(id, owner);
      // The loop looks at intervals too.
      await store.notify('deliveryDue', '').catch(() => undefined);
      return record;
    },
    /** Delivers what is due until the signal; then finishes what has begun. */
    run: (signal: AbortSignal): Promise<void> =>
      deliverUntil(signal, { store, outbox, log, metrics, delays, send }, limits),
    /**
     * Removes deliveries that ended long ago, a bounded number per call. Any node, at any time.
     *
     * @throws ApiError `STORAGE_DOWN`
     */
    sweep: (): Promise<void> =>
      outbox.removeFinished(config.KINORA_RETENTION_DAYS * keptRetentions),
  };
}

/** The outbox and its deliveries. */
export type Webhooks = ReturnType<typeof createWebhooks>;
