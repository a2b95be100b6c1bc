import type { Logger } from 'pino';
import { ApiError, type DeliveryRecord } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { OutboxRow } from '../jobs';
import { type Guard, GuardError, type Keys, type Metrics } from '../relay';
import { type Store, storageErrors } from '../store';
import type { DeliveryRow } from '../store/schema';
import { createOutboxRow, type WebhookLinks } from './body';
import { deliverUntil, type LoopLimits } from './loop';
import { listDeliveries, removeFinished, replayDelivery } from './rows';
import { type SendLimits, sendWebhook } from './send';

/** Limits of delivering; durations in milliseconds. */
export type WebhookLimits = LoopLimits & SendLimits;

/** The outbox and its deliveries. */
export interface Webhooks {
  /** @throws ApiError `INVALID_WEBHOOK` */
  checkUrl(url: string): string;
  readonly outboxRow: OutboxRow;
  /** Newest first; of every owner where none is named. */
  list(
    owner: string | undefined,
    query: { page: number; pageSize: number; status?: DeliveryRow['status'] | undefined },
  ): Promise<DeliveryRecord[]>;
  /** @throws ApiError `NOT_FOUND` */
  replay(id: string, owner?: string): Promise<DeliveryRecord>;
  /** Delivers what is due until the signal; then finishes what is under way. */
  run(signal: AbortSignal): Promise<void>;
}

/** What webhooks are made of. */
export interface WebhookParts {
  readonly store: Store;
  readonly config: Pick<Config, 'KINORA_WEBHOOK_DELAYS' | 'KINORA_STOP_SECONDS'>;
  readonly guard: Guard;
  readonly keys: Pick<Keys, 'webhookSecret'>;
  readonly links: WebhookLinks;
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
}: WebhookParts): Webhooks {
  const delays = config.KINORA_WEBHOOK_DELAYS;
  const limits: WebhookLimits = {
    concurrency: 64,
    perHost: 8,
    connectMs: 5000,
    totalMs: 15_000,
    leaseMs: 30_000,
    pollMs: 2000,
    stopMs: config.KINORA_STOP_SECONDS * 1000,
    ...options.limits,
  };
  return {
    checkUrl(url) {
      try {
        return guard.check(url).href;
      } catch (thrown) {
        if (!(thrown instanceof GuardError)) throw thrown;
        const details = [{ field: 'webhook', message: thrown.message }];
        throw new ApiError('INVALID_WEBHOOK', undefined, { details, cause: thrown });
      }
    },
    outboxRow: createOutboxRow(links, delays[0] ?? 0),
    list: (owner, query) => storageErrors(() => listDeliveries(store.db, owner, query)),
    async replay(id, owner) {
      const record = await storageErrors(() => replayDelivery(store.db, id, owner));
      await store.notify('deliveryDue', '').catch(() => undefined);
      return record;
    },
    run: (signal) =>
      deliverUntil(
        signal,
        {
          store,
          log,
          metrics,
          delays,
          send: (delivery, stop) => sendWebhook(delivery, { guard, keys }, limits, stop),
        },
        limits,
      ),
  };
}

/** Deliveries are kept so many times longer than outputs: who missed one asks for it later. */
const keptRetentions = 4;

/**
 * Removes deliveries that ended long ago, a bounded number per call. Any node, at any time.
 *
 * @throws ApiError `STORAGE_DOWN`
 */
export async function sweepDeliveries(
  store: Pick<Store, 'db'>,
  config: Pick<Config, 'KINORA_RETENTION_DAYS'>,
): Promise<void> {
  const days = config.KINORA_RETENTION_DAYS * keptRetentions;
  await storageErrors(() => removeFinished(store.db, days));
}
