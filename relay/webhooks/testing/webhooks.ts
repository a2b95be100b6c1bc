import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { bareAddress } from '../../../lib/contract';
import { createGuard, type Guard } from '../../guard/guard';
import { type DeliveryRow, deliveries } from '../../store/schema';
import type { Store } from '../../store/store';
import { createWebhooks, type WebhookLimits } from '../webhooks';

/** The secret of every owner in these tests. */
export const testSecret = `whsec_${randomBytes(32).toString('base64')}`;

/** Webhooks on a store, quick to retry, and what they counted. */
export function webhooksOn(
  store: Store,
  options: {
    limits?: Partial<WebhookLimits>;
    delays?: number[];
    guard?: Guard;
    stopSeconds?: number;
  } = {},
) {
  const outcomes: string[] = [];
  const webhooks = createWebhooks({
    store,
    config: {
      KINORA_WEBHOOK_DELAYS: options.delays ?? [0, 0.03, 0.03, 0.03],
      KINORA_STOP_SECONDS: options.stopSeconds ?? 5,
      KINORA_RETENTION_DAYS: 7,
    },
    guard: options.guard ?? createGuard({ allowPrivate: true }),
    keys: { webhookSecret: async () => testSecret },
    links: {
      prediction: (id) => `https://kinora.example/api/v3/predictions/${id}/result`,
      output: ({ status, outputKey }) =>
        status === 'completed' && outputKey ? `https://kinora.example/${outputKey}` : null,
      shown: bareAddress,
    },
    log: pino({ level: 'silent' }),
    metrics: { delivery: (outcome) => outcomes.push(outcome) },
    limits: { pollMs: 100, ...options.limits },
  });
  return { webhooks, outcomes };
}

/** A delivery as the outbox row of a job would be. */
export function newDelivery(
  url: string,
  more: Partial<typeof deliveries.$inferInsert> = {},
): typeof deliveries.$inferInsert & { id: string } {
  const jobId = randomBytes(16).toString('hex');
  return {
    id: `msg_${randomBytes(16).toString('hex')}`,
    jobId,
    owner: 'ada',
    url,
    body: JSON.stringify({ id: jobId, prompt: 'Zwölf 🥊' }),
    ...more,
  };
}

/** Inserts deliveries and announces them. */
export async function insert(
  store: Store,
  ...rows: (typeof deliveries.$inferInsert)[]
): Promise<void> {
  await store.db.insert(deliveries).values(rows);
  await store.notify('deliveryDue', '');
}

/** The row of a delivery. */
export async function rowOf(store: Store, id: string): Promise<DeliveryRow> {
  const [row] = await store.db.select().from(deliveries).where(eq(deliveries.id, id));
  if (!row) throw new Error('There is no such delivery.');
  return row;
}
