import type { HandlerOf } from '../handler';
import { ownJob } from './predictions';

/** `POST /api/v3/predictions/{id}/share`: makes the link of a result, or changes it. */
export const share: HandlerOf<'share'> = async (relay, { params, caller, body }) =>
  relay.files.shares.share(await ownJob(relay, params.id, caller), body);

/** `DELETE /api/v3/predictions/{id}/share`: ends the link of a result. */
export const unshare: HandlerOf<'unshare'> = async (relay, { params, caller }) => {
  const { id } = await ownJob(relay, params.id, caller);
  return { revoked: await relay.files.shares.revoke(id) };
};
