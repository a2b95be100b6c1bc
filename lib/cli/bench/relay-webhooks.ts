import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import pino from 'pino';
import { readConfig } from '../../../relay/config';
import { openRelay, type Relay } from '../../../relay/open';
import { deliveries } from '../../../relay/store/schema';
import { startPostgres } from '../../../relay/testing/postgres';
import { type Received, startReceiver } from '../../../relay/testing/receiver';

const count = 2000;

/** Webhook deliveries per second to a receiver of this machine, and how late the last ones are. */
export async function benchWebhooks(): Promise<void> {
  for (const engine of ['pglite', 'postgres'] as const) {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'kinora-bench-'));
    const server = engine === 'postgres' ? await startPostgres({ durable: true }) : null;
    const receiver = await startReceiver();
    try {
      const config = readConfig({
        KINORA_DATA: folder,
        DATABASE_URL: server?.url,
        KINORA_ALLOW_PRIVATE: '1',
      });
      const relay = await openRelay(config, { log: pino({ level: 'silent' }) });
      try {
        await fill(relay, receiver.url);
        const startedAt = performance.now();
        relay.start();
        while (receiver.received.length < count) await delay(5);
        const seconds = (performance.now() - startedAt) / 1000;
        const rate = Math.round(count / seconds);
        const once = new Set(receiver.received.map(idOf)).size === receiver.received.length;
        process.stdout.write(
          `webhooks, ${engine}: ${count} in ${seconds.toFixed(1)} s, ${rate}/s` +
            `${once ? '' : ', some twice'}\n`,
        );
      } finally {
        await relay.stop();
      }
    } finally {
      await receiver.close();
      await server?.stop();
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** Deliveries that are due, with bodies of the usual size. */
async function fill({ store, keys }: Relay, url: string): Promise<void> {
  await keys.webhookSecret('owner');
  const body = JSON.stringify({ text: 'x'.repeat(1000) });
  await store.db.insert(deliveries).select(
    sql`select 'msg_' || md5(n::text), md5(n::text), 'owner', ${url}, ${body}, 'due', 0, 0,
        now(), null::integer, '', now(), null::timestamptz from generate_series(1, ${count}) n`,
  );
}

function idOf({ headers }: Received): string {
  return String(headers['webhook-id']);
}
