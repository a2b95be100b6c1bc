import { type DeliveryRecord, endpoints } from '../../lib/contract/v3';
import type { Config } from '../config';
import type { Control } from '../keys/control';
import { askServer, findServer } from '../keys/running-server';
import { openStore, storageErrors } from '../store';
import type { DeliveryRow } from '../store/schema';
import { listDeliveries, replayDelivery } from './rows';

const pageSize = 50;

/** The two things that the command does, wherever it does them. */
export interface WebhooksDoor {
  list(query: {
    page: number;
    status: DeliveryRow['status'] | undefined;
  }): Promise<DeliveryRecord[]>;
  replay(id: string): Promise<DeliveryRecord>;
  /** Whether a server of this folder runs: it sends what is replayed. */
  readonly running: boolean;
  close(): Promise<void>;
}

/**
 * The running server where there is one, else the database itself: the embedded one is locked by the
 * process that has it, so that it is never opened twice (v3-api.md §4).
 *
 * @throws Error with one sentence when the database belongs to another process
 */
export async function openDoor(config: Config): Promise<WebhooksDoor> {
  const server = await findServer(config);
  if (server) return throughServer(server);
  const { db, close, notify } = await openStore(config);
  return {
    running: false,
    list: ({ page, status }) =>
      storageErrors(() => listDeliveries(db, undefined, { page, pageSize, status })),
    async replay(id) {
      const record = await storageErrors(() => replayDelivery(db, id, undefined));
      // Other nodes of a PostgreSQL may run, without a control file here.
      await notify('deliveryDue', '').catch(() => undefined);
      return record;
    },
    close,
  };
}

function throughServer(control: Control): WebhooksDoor {
  const { deliveries, replay } = endpoints;
  return {
    running: true,
    async list({ page, status }) {
      const query = new URLSearchParams({
        page: String(page),
        page_size: String(pageSize),
        ...(status && { status }),
      });
      const path = `${deliveries.path}?${query}`;
      return (await askServer(control, deliveries, { path })).data.items;
    },
    replay: async (id) =>
      (await askServer(control, replay, { path: replay.path.replace('{id}', id) })).data,
    close: async () => {},
  };
}
