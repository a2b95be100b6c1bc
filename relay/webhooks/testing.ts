import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { createGuard, type Guard } from '../guard/guard';
import { serve } from '../guard/testing/server';
import { type DeliveryRow, deliveries } from '../store/schema';
import type { Store } from '../store/store';
import { createWebhooks, type WebhookLimits } from './webhooks';

/** The secret of every owner in these tests. */
export const testSecret = `whsec_${randomBytes(32).toString('base64')}`;

/** A webhook as a receiver got it. */
export interface Arrived {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on loopback that answers as a test says. */
export async function startReceiver(
  answer: (response: ServerResponse, arrived: Arrived, count: number) => void,
) {
  const arrived: Arrived[] = [];
  const server = await serve((request, response) => {
    void text(request).then(
      (body) => {
        const one = { path: request.url ?? '', headers: request.headers, body };
        arrived.push(one);
        answer(response, one, arrived.length);
      },
      // One that was broken off on its way has not arrived.
      () => undefined,
    );
  });
  return { ...server, url: `${server.origin}/hook`, arrived };
}

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
    },
    guard: options.guard ?? createGuard({ allowPrivate: true }),
    keys: { webhookSecret: async () => testSecret },
    links: {
      prediction: (id) => `https://kinora.example/api/v3/predictions/${id}/result`,
      output: (job) => job.outputKey && `https://kinora.example/${job.outputKey}`,
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

/** Inserts deliveries and rings. */
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
  if (!row) throw new Error('The delivery is gone.');
  return row;
}
