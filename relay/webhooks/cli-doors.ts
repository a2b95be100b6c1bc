import { z } from 'zod';
import { type DeliveryRecord, endpoints } from '../../lib/contract/v3';
import type { Config } from '../config';
import { type Control, readControl } from '../keys/control';
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
  const control = await readControl(config);
  if (control && (await answers(control))) return throughServer(control);
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

/** The process of the control file may have died, and its number may be another's by now. */
async function answers({ origin }: Control): Promise<boolean> {
  try {
    await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch (error) {
    // Refused: nobody listens. Anything else may be a server that is busy.
    const cause = error instanceof Error ? error.cause : undefined;
    return !(cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED');
  }
}

function throughServer({ origin, token }: Control): WebhooksDoor {
  const call = async <Answer extends z.ZodType>(
    endpoint: { method: string; answer: Answer },
    path: string,
  ): Promise<z.output<Answer>> => {
    const response = await fetch(origin + path, {
      method: endpoint.method,
      headers: { Authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(30_000),
    });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return endpoint.answer.parse(answer);
    const refusal = z.object({ message: z.string() }).safeParse(answer);
    throw new Error(refusal.data?.message ?? `The server answered ${response.status}.`);
  };
  return {
    running: true,
    async list({ page, status }) {
      const query = new URLSearchParams({
        page: String(page),
        page_size: String(pageSize),
        ...(status && { status }),
      });
      const { deliveries } = endpoints;
      return (await call(deliveries, `${deliveries.path}?${query}`)).data.items;
    },
    replay: async (id) =>
      (await call(endpoints.replay, endpoints.replay.path.replace('{id}', id))).data,
    close: async () => {},
  };
}
