import type { z } from 'zod';
import { ApiError, type listBodySchema } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import { takeOwnVideo } from '../../files/outputs/video';
import { isUploaded } from '../../files/shares/rows';
import { isTerminal } from '../../jobs';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import { answerJob, describeJob } from './describe';
import type { CallOf, HandlerOf, Handlers } from './index';

/** The refusal of an id that no prediction of the caller has. */
function noPrediction(id: string): ApiError {
  return new ApiError('NOT_FOUND', `There is no prediction with the id ${id}.`, {
    remedy:
      'It may have been deleted, or belong to another owner; POST /api/v3/predictions lists yours.',
  });
}

/** A prediction of the caller. Another owner's is not found, like one that does not exist. */
export async function ownJob(relay: Relay, id: string, caller: Caller): Promise<JobRow> {
  const job = await relay.jobs.get(id, caller.owner);
  if (job === null) throw noPrediction(id);
  return job;
}

/**
 * Waits until a job has ended, the time is over, the client has disconnected, or the server stops. It does
 * not wait where the key has too many open answers already: the caller can request the result again.
 *
 * @returns the job's latest row; null when it was deleted meanwhile
 */
export async function waitForEnd(
  relay: Relay,
  { id, keyId }: JobRow,
  seconds: number,
  client: AbortSignal,
): Promise<JobRow | null> {
  const endCount = relay.watches.open(keyId);
  const until = performance.now() + (endCount ? seconds * 1000 : 0);
  try {
    for await (const { job } of relay.watches.follow(id, client, { until, only: 'status' })) {
      if (isTerminal(job)) return job;
    }
    return await relay.jobs.get(id);
  } finally {
    endCount?.();
  }
}

async function pageOf(
  relay: Relay,
  { status, ...query }: z.output<typeof listBodySchema>,
  caller: Caller,
) {
  if (status === 'cancelled' || status === 'timeout') {
    const total = query.include_total && { total: 0 };
    return { page: query.page, ...total, items: [], next_cursor: null };
  }
  const { jobs, total, next } = await relay.jobs.list(caller.owner, { ...query, status });
  const items = await Promise.all(jobs.map((job) => describeJob(relay, job)));
  return { page: query.page, ...(total !== null && { total }), items, next_cursor: next };
}

/** Deletes finished jobs of the caller with their files. @returns how many */
async function removeJobs(
  relay: Relay,
  ids: readonly string[],
  { caller, requestId }: Pick<CallOf<'remove'>, 'caller' | 'requestId'>,
): Promise<number> {
  const removed = ids.length === 0 ? [] : await relay.jobs.remove(ids, caller.owner);
  for (const job of removed) {
    // The row is deleted, so nothing links to its files; a file that stays only costs space.
    const about = { request_id: requestId, job: job.id };
    await relay.files.removeOf(job.id).catch((err: unknown) => {
      relay.log.warn({ ...about, err }, 'files of a job were not removed');
    });
  }
  return removed.length;
}

const get: HandlerOf<'get' | 'legacyResult'> = async (relay, { params, caller }) =>
  answerJob(relay, await ownJob(relay, params.id, caller));

/** Handlers of predictions, and of links to their videos. */
export const predictionHandlers = {
  /** `GET …/result`: at once, or after at most `wait` seconds. A failed prediction is an answer, not an error. */
  result: async (relay, { params, query, caller, request }) => {
    const job = await ownJob(relay, params.id, caller);
    if (query.wait === undefined || isTerminal(job)) return answerJob(relay, job);
    const last = await waitForEnd(relay, job, query.wait, request.signal);
    if (last === null) throw noPrediction(params.id);
    return answerJob(relay, last);
  },

  /** The same without a wait, under its other addresses. */
  get,
  legacyResult: get,

  /** `POST /api/v3/predictions`: newest first. */
  list: async (relay, { body, caller }) => pageOf(relay, body, caller),

  listByQuery: async (relay, { query, caller }) => pageOf(relay, query, caller),

  /** `POST /api/v3/predictions/delete`: finished predictions with their files. */
  remove: async (relay, call) => ({
    deleted_count: await removeJobs(relay, [...new Set(call.body.ids)], call),
  }),

  /** `POST …/cancel`: ends a prediction at once; one that has ended stays as it is. */
  cancel: async (relay, { params, caller }) => {
    const job = await relay.jobs.cancel(params.id, caller.owner);
    if (job === null) throw noPrediction(params.id);
    return describeJob(relay, job);
  },

  /** `POST /api/v3/predictions/{id}/share`: makes the link of a result, or changes it. */
  share: async (relay, { params, caller, body }) =>
    relay.files.shares.share(await ownJob(relay, params.id, caller), body),

  /** `DELETE /api/v3/predictions/{id}/share`: ends the link of a result. */
  unshare: async (relay, { params, caller }) => {
    const { id } = await ownJob(relay, params.id, caller);
    return { revoked: await relay.files.shares.revoke(id) };
  },

  /** `POST /api/admin/videos/{id}/share`: an uploaded video of the studio becomes a result with a link. */
  shareOwnVideo: async (relay, call) => {
    const { params, caller, body } = call;
    const removeOld = () => removeJobs(relay, [params.id], call);
    const job = await takeOwnVideo(relay.files, params.id, caller, body, removeOld);
    return await relay.files.shares.share(job, body.share);
  },

  /** `DELETE /api/admin/videos/{id}/share`: the server keeps nothing of it. */
  unshareOwnVideo: async (relay, call) => {
    const job = await ownJob(relay, call.params.id, call.caller);
    if (!isUploaded(job)) throw new ApiError('CONFLICT', 'This is a result of the API.');
    return { revoked: (await removeJobs(relay, [job.id], call)) > 0 };
  },

  listShares: async ({ files }, { caller }) => ({
    shares: await files.shares.list(caller.owner),
  }),

  /** `DELETE /api/admin/shares/{id}`: ends any link of the owner. */
  revokeShare: async (relay, call) => {
    const lookup = await relay.files.shares.find(call.params.id);
    // Another owner's is not found, like one that does not exist; one that has ended is no error.
    if (lookup.kind === 'ended') return { revoked: false };
    if (lookup.kind === 'unknown' || lookup.job.owner !== call.caller.owner)
      throw new ApiError('NOT_FOUND');
    const { job } = lookup;
    if (!isUploaded(job)) return { revoked: await relay.files.shares.revoke(job.id) };
    return { revoked: (await removeJobs(relay, [job.id], call)) > 0 };
  },
} as const satisfies Handlers;
