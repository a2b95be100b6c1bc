import { type Caller, controlCaller } from '../access/caller';
import type { HandlerOf } from './handler';

/** `GET /api/v3/webhook/secret` */
export const webhookSecret: HandlerOf<'webhookSecret'> = async ({ keys }, { caller }) => ({
  secret: await keys.webhookSecret(caller.owner),
});

/** `GET /api/v3/webhook/deliveries` */
export const deliveries: HandlerOf<'deliveries'> = async ({ webhooks }, { query, caller }) => {
  const { page, page_size: pageSize, status } = query;
  return { page, items: await webhooks.list(ownerFor(caller), { page, pageSize, status }) };
};

/** `POST /api/v3/webhook/deliveries/{id}/replay` */
export const replay: HandlerOf<'replay'> = async ({ webhooks }, { params, caller }) =>
  webhooks.replay(params.id, ownerFor(caller));

/** Commands on the server's machine see the webhooks of every owner. */
function ownerFor(caller: Caller): string | undefined {
  return caller.keyId === controlCaller.keyId ? undefined : caller.owner;
}
