import { ApiError } from '../../../lib/contract/v3';
import { isUploaded } from '../../files/shares/rows';
import type { HandlerOf } from '../handler';
import { ownJob, removeJobs } from './predictions';

/** `POST /api/v3/predictions/{id}/share`: makes the link of a result, or changes it. */
export const share: HandlerOf<'share'> = async (relay, { params, caller, body }) =>
  relay.files.shares.share(await ownJob(relay, params.id, caller), body);

/** `DELETE /api/v3/predictions/{id}/share`: ends the link of a result. */
export const unshare: HandlerOf<'unshare'> = async (relay, { params, caller }) => {
  const { id } = await ownJob(relay, params.id, caller);
  return { revoked: await relay.files.shares.revoke(id) };
};

/** `POST /api/admin/videos/{id}/share`: an uploaded video of the studio becomes a result with a link. */
export const shareOwnVideo: HandlerOf<'shareOwnVideo'> = async (relay, call) => {
  const { params, caller, body, requestId } = call;
  const known = await relay.jobs.get(params.id, caller.owner);
  // The studio has decoded it again, or the earlier file has expired.
  const isOld = known?.outputSha256 !== body.sha256 || known.outputKey === null;
  const removeOld = async () => {
    if (known === null || !isUploaded(known) || !isOld) return;
    await removeJobs(relay, [params.id], caller, requestId);
  };
  const job = await relay.files.takeOwnVideo(params.id, caller, body, removeOld);
  return await relay.files.shares.share(job, body.share);
};

/** `DELETE /api/admin/videos/{id}/share`: the server keeps nothing of it. */
export const unshareOwnVideo: HandlerOf<'unshareOwnVideo'> = async (relay, call) => {
  const { params, caller, requestId } = call;
  const job = await ownJob(relay, params.id, caller);
  if (!isUploaded(job)) throw new ApiError('CONFLICT', 'This is a result of the API.');
  return { revoked: (await removeJobs(relay, [job.id], caller, requestId)) > 0 };
};

export const listShares: HandlerOf<'listShares'> = async ({ files }, { caller }) => ({
  shares: await files.shares.list(caller.owner),
});

/** `DELETE /api/admin/shares/{id}`: ends any link of the owner. */
export const revokeShare: HandlerOf<'revokeShare'> = async (relay, call) => {
  const { params, caller, requestId } = call;
  const found = await relay.files.shares.find(params.id);
  // Another owner's is not found, like one that does not exist; one that has ended is no error.
  if (found.kind === 'ended') return { revoked: false };
  if (found.kind === 'unknown' || found.job.owner !== caller.owner) throw new ApiError('NOT_FOUND');
  const { job } = found;
  if (!isUploaded(job)) return { revoked: await relay.files.shares.revoke(job.id) };
  return { revoked: (await removeJobs(relay, [job.id], caller, requestId)) > 0 };
};
