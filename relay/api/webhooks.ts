import { controlKeyId } from '../keys/owner';
import type { Caller } from '../relay';
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

/** A command on the server's own machine sees every owner's webhooks, with the server or without it. */
function ownerFor(caller: Caller): string | undefined {
  return caller.keyId === controlKeyId ? undefined : caller.owner;
}
