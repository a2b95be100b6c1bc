import type { z } from 'zod';
import type { Endpoint, endpoints, OperationId } from '../../lib/contract/v3';
import type { Caller, Relay } from '../relay';

type EndpointOf<Op extends OperationId> = (typeof endpoints)[Op];
/** What a schema of an endpoint makes of what was sent; an empty object where it has none. */
type Checked<Op extends OperationId, Part extends 'params' | 'query' | 'body'> =
  EndpointOf<Op> extends { readonly [Key in Part]: infer Schema extends z.ZodType }
    ? z.output<Schema>
    : Record<never, never>;

/** One request, already let in: key, limits, content type, size and schema have been looked at. */
export interface CallOf<Op extends OperationId> {
  /** Its body has been read; its signal aborts when the client goes away. */
  readonly request: Request;
  /** Null only where anybody may call. */
  readonly caller: EndpointOf<Op>['access'] extends 'anyone' ? Caller | null : Caller;
  readonly params: Checked<Op, 'params'>;
  readonly query: Checked<Op, 'query'>;
  readonly body: Checked<Op, 'body'>;
  /** The same as in the header `X-Request-Id` and in the logs. */
  readonly requestId: string;
}

/** A request whose operation is not known by type. */
export interface Call {
  readonly request: Request;
  readonly caller: Caller | null;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
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

/**
 * A handler as the table keeps it. It is declared as a method, which TypeScript compares in both
 * directions: so a {@link HandlerOf} fits, and what it asks for is what the schemas were checked for.
 */
export type Handler = {
  answer(relay: Relay, call: Call): Promise<unknown | Response>;
}['answer'];

/** Every operation that goes through Next has one. */
export type Handlers = { readonly [Op in OperationId]?: HandlerOf<Op> };

/** The row of the endpoints' table, as one type for all. */
export function endpointOf(table: typeof endpoints, operation: OperationId): Endpoint {
  return table[operation];
}
