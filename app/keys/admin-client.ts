import type { z } from 'zod';
import {
  apiErrorSchema,
  type createKeySchema,
  type Endpoint,
  endpoints,
} from '../../lib/contract/v3';
import { t } from '../texts';
import '../texts/en/keys';

/** An error response or no response, with a sentence for the page. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
  /** HTTP status; 0 if there was no response. */
  readonly status: number;

  constructor(status: number, sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.status = status;
  }
}

type Answered<Row extends { answer: z.ZodType }> = z.output<Row['answer']>;

/**
 * Calls an operation with the session's cookie.
 *
 * @throws AdminError
 */
async function call<Row extends Endpoint & { answer: z.ZodType }>(
  endpoint: Row,
  options: { path?: string; body?: unknown } = {},
): Promise<Answered<Row>> {
  const { path = endpoint.path, body } = options;
  let response: Response;
  try {
    response = await fetch(path, {
      method: endpoint.method,
      cache: 'no-store',
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
  } catch (cause) {
    throw new AdminError(0, t('keys.noResponse'), { cause });
  }
  // A proxy's page is no JSON.
  const json: unknown = await response.json().catch(() => null);
  if (!response.ok) {
    const refusal = apiErrorSchema.safeParse(json);
    const sentence = refusal.data?.message ?? t('keys.status', { status: response.status });
    throw new AdminError(response.status, sentence);
  }
  const answer = endpoint.answer.safeParse(json);
  if (answer.success) return answer.data as Answered<Row>;
  throw new AdminError(response.status, t('keys.unexpected'));
}

/** Body of the request that creates a key. */
export type KeyRequest = z.input<typeof createKeySchema>;

export const admin = {
  signIn: async (token: string) => (await call(endpoints.signIn, { body: { token } })).data,
  signOut: async () => (await call(endpoints.signOut)).data,
  createKey: async (body: KeyRequest) => (await call(endpoints.createKey, { body })).data,
  revokeKey: async (id: string) => {
    const path = endpoints.revokeKey.path.replace('{id}', encodeURIComponent(id));
    return (await call(endpoints.revokeKey, { path })).data;
  },
  revokeShare: async (id: string) => {
    const path = endpoints.revokeShare.path.replace('{id}', id);
    return (await call(endpoints.revokeShare, { path })).data;
  },
  /** All data of the page. */
  load: async () => {
    const [{ data: listed }, { data: connected }, { data: shared }] = await Promise.all([
      call(endpoints.listKeys),
      call(endpoints.listWorkers),
      call(endpoints.listShares),
    ]);
    return { ...listed, ...connected, ...shared };
  },
};
/** The result of {@link admin.load}. */
export type AdminData = Awaited<ReturnType<typeof admin.load>>;
