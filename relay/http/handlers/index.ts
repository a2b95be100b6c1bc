import { type Caller, controlCaller } from '../../access/caller';
import type { HandlerOf, Handlers } from '../handler';
import { adminHandlers } from './admin';
import { balance, models, price, pricing } from './catalogue';
import { events } from './events';
import { cancel, get, list, listByQuery, remove, result } from './predictions';
import { listShares, revokeShare, share, shareOwnVideo, unshare, unshareOwnVideo } from './shares';
import { submit } from './submit';
import { workerHandlers } from './worker';

/** `POST /api/v3/media/uploads`: where to send the bytes, and their address after that. */
export const uploadTicket: HandlerOf<'uploadTicket'> = async ({ files }, { body, caller }) => {
  const { upload, headers } = await files.ticket(caller, body);
  return {
    download_url: files.links.uploadDownload(upload),
    upload: { method: 'PUT', url: files.links.uploadTarget(upload), headers },
  };
};

export const webhookSecret: HandlerOf<'webhookSecret'> = async ({ keys }, { caller }) => ({
  secret: await keys.webhookSecret(caller.owner),
});

export const deliveries: HandlerOf<'deliveries'> = async ({ webhooks }, { query, caller }) => {
  const { page, page_size: pageSize, status } = query;
  return { page, items: await webhooks.list(ownerFor(caller), { page, pageSize, status }) };
};

export const replay: HandlerOf<'replay'> = async ({ webhooks }, { params, caller }) =>
  webhooks.replay(params.id, ownerFor(caller));

/** Commands on the server's machine see the webhooks of every owner. */
function ownerFor(caller: Caller): string | undefined {
  return caller.keyId === controlCaller.keyId ? undefined : caller.owner;
}

/** Every operation that goes through Next. The two multipart uploads are the Node server's. */
export const handlers: Handlers = {
  submit,
  result,
  get,
  legacyResult: get,
  list,
  listByQuery,
  remove,
  cancel,
  share,
  unshare,
  shareOwnVideo,
  unshareOwnVideo,
  listShares,
  revokeShare,
  events,
  uploadTicket,
  models,
  balance,
  pricing,
  price,
  webhookSecret,
  deliveries,
  replay,
  ...adminHandlers,
  ...workerHandlers,
};
