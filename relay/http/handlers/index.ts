import type { z } from 'zod';
import type { endpoints, OperationId } from '../../../lib/contract/v3';
import { type Caller, controlCaller } from '../../access/caller';
import { createTicket } from '../../files/uploads';
import type { Relay } from '../../open';
import { adminHandlers } from './admin';
import { catalogueHandlers } from './catalogue';
import { events } from './events';
import { predictionHandlers } from './predictions';
import { submit } from './submit';
import { workerHandlers } from './worker';

type EndpointOf<Op extends OperationId> = (typeof endpoints)[Op];
/** The output of an endpoint's schema; an empty object where it has none. */
type Checked<Op extends OperationId, Part extends 'params' | 'query' | 'body'> =
  EndpointOf<Op> extends { readonly [Key in Part]: infer Schema extends z.ZodType }
    ? z.output<Schema>
    : Record<never, never>;

/** A request whose key, limits, content type, size and schema have been checked. */
export interface CallOf<Op extends OperationId> {
  /** Its body has been read; its signal aborts when the client goes away. */
  readonly request: Request;
  /** Null only where no key is needed. */
  readonly caller: EndpointOf<Op>['access'] extends 'anyone' ? Caller | null : Caller;
  readonly params: Checked<Op, 'params'>;
  readonly query: Checked<Op, 'query'>;
  readonly body: Checked<Op, 'body'>;
  /** As in the header `X-Request-Id` and in the logs. */
  readonly requestId: string;
}

/**
 * Answers one operation. A value that is no `Response` is put into the envelope
 * `{code: 200, message: 'success', data}`.
 *
 * @throws ApiError for every refusal
 */
export type HandlerOf<Op extends OperationId> = (
  relay: Relay,
  call: CallOf<Op>,
) => Promise<unknown | Response>;

type AnyCall = Pick<CallOf<OperationId>, 'request' | 'requestId'> & {
  readonly caller: Caller | null;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
};

/**
 * A handler of any operation. It is declared as a method because TypeScript compares the parameters of methods
 * in both directions: so each {@link HandlerOf} is assignable.
 */
export type Handler = {
  answer(relay: Relay, call: AnyCall): Promise<unknown | Response>;
}['answer'];

export type Handlers = { readonly [Op in OperationId]?: HandlerOf<Op> };

/** Every operation that goes through Next. The two multipart uploads are in `files/`. */
export const handlers: Handlers = {
  ...predictionHandlers,
  ...catalogueHandlers,
  ...adminHandlers,
  ...workerHandlers,
  submit,
  legacySubmit: submit,
  events,

  /** `POST /api/v3/media/uploads` */
  uploadTicket: async ({ files }, { body, caller }) => createTicket(files, caller, body),

  webhookSecret: async ({ keys }, { caller }) => ({
    secret: await keys.webhookSecret(caller.owner),
  }),

  deliveries: async ({ webhooks }, { query, caller }) => {
    const { page, page_size: pageSize, status } = query;
    return { page, items: await webhooks.list(ownerFor(caller), { page, pageSize, status }) };
  },

  replay: async ({ webhooks }, { params, caller }) => webhooks.replay(params.id, ownerFor(caller)),
};

/** Commands on the server's machine see the webhooks of every owner. */
function ownerFor(caller: Caller): string | undefined {
  return caller.keyId === controlCaller.keyId ? undefined : caller.owner;
}
