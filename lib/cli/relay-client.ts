import { existsSync } from 'node:fs';
import path from 'node:path';
import type { z } from 'zod';
import { type Control, processControlToken, readControl } from '../../relay/access/control';
import type { Config } from '../../relay/config';
import { type Endpoint, endpoints, type OperationId } from '../contract/v3';
import { checkResponse } from '../worker/transport-error';

/** Operations whose answer is the JSON envelope. */
type JsonOperation = {
  [Op in OperationId]: (typeof endpoints)[Op] extends { readonly answer: z.ZodType } ? Op : never;
}[OperationId];
type DataOf<Op extends JsonOperation> = z.output<(typeof endpoints)[Op]['answer']>['data'];

export interface CallInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Calls operations of this machine's Kinora as its first owner, with every scope: of the running server where there is
 * one, else of a relay that is opened in this process without its server and its background work.
 *
 * @throws Error with one sentence when the database belongs to another process
 */
export async function openClient(config: Config) {
  const control = await readControl(config);
  if (control && (await answers(control))) {
    const { origin, token, publicUrl } = control;
    const send = (request: Request) => fetch(request, { signal: AbortSignal.timeout(30_000) });
    const call = caller(origin, token, send);
    return { serverRuns: true, publicUrl, newFolder: null, call, close: async () => {} };
  }
  const isNew =
    config.DATABASE_URL === undefined && !existsSync(path.join(config.KINORA_DATA, 'db'));
  // Loaded late: help, refusals and calls of a server need no database.
  const [{ openRelay }, { answer }, { pino }] = await Promise.all([
    import('../../relay/open'),
    import('../../relay/http/answer'),
    import('pino'),
  ]);
  const relay = await openRelay(config, pino({ level: 'silent' }));
  return {
    /** Whether a server answers. Else the handlers run in this process, on the database itself. */
    serverRuns: false,
    publicUrl: relay.files.links.publicUrl,
    /** The data folder, where this client has made its database; null where there was one. */
    newFolder: isNew ? config.KINORA_DATA : null,
    call: caller('http://localhost', processControlToken(), (request) => answer(relay, request)),
    close: () => relay.stop(),
  };
}

export type Client = Awaited<ReturnType<typeof openClient>>;

/** The process of the control file may be dead, and its number another's. */
async function answers({ origin }: Control): Promise<boolean> {
  try {
    await fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch (error) {
    // Anything but a refused connection may be a server that is busy.
    const cause = error instanceof Error ? error.cause : undefined;
    return !(cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED');
  }
}

/** @returns a function that throws as {@link checkResponse} */
function caller(origin: string, token: string, send: (request: Request) => Promise<Response>) {
  return async <Op extends JsonOperation>(
    operation: Op,
    input: CallInput = {},
  ): Promise<DataOf<Op>> => {
    const endpoint: Endpoint & { readonly answer: z.ZodType } = endpoints[operation];
    const { params = {}, query = {}, body } = input;
    const filled = endpoint.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = params[name];
      if (value === undefined) throw new TypeError(`${operation} needs the parameter ${name}.`);
      return encodeURIComponent(value);
    });
    const search = new URLSearchParams(query).toString();
    const response = await send(
      new Request(`${origin}${filled}${search && `?${search}`}`, {
        method: endpoint.method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
    await checkResponse(response);
    return (endpoint.answer.parse(await response.json()) as { data: DataOf<Op> }).data;
  };
}
