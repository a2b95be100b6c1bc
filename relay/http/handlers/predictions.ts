import type { z } from 'zod';
import { ApiError, type listBodySchema } from '../../../lib/contract/v3';
import type { Caller } from '../../access/caller';
import { isTerminal } from '../../jobs';
import type { Relay } from '../../open';
import type { JobRow } from '../../store/schema';
import type { HandlerOf } from '../handler';
import { answerJob, describeJob } from './describe';

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

/** `GET …/result`: at once, or after at most `wait` seconds. A failed prediction is an answer, not an error. */
export const result: HandlerOf<'result'> = async (relay, { params, query, caller, request }) => {
  const job = await ownJob(relay, params.id, caller);
  if (query.wait === undefined || isTerminal(job)) return answerJob(relay, job);
  const last = await waitForEnd(relay, job, query.wait, request.signal);
  if (last === null) throw noPrediction(params.id);
  return answerJob(relay, last);
};

/** The same without a wait, under its other addresses. */
export const get: HandlerOf<'get' | 'legacyResult'> = async (relay, { params, caller }) =>
  answerJob(relay, await ownJob(relay, params.id, caller));

/** `POST /api/v3/predictions`: newest first. */
export const list: HandlerOf<'list'> = async (relay, { body, caller }) =>
  pageOf(relay, body, caller);

export const listByQuery: HandlerOf<'listByQuery'> = async (relay, { query, caller }) =>
  pageOf(relay, query, caller);

async function pageOf(relay: Relay, asked: z.output<typeof listBodySchema>, caller: Caller) {
  const { jobs, total, next } = await relay.jobs.list(caller.owner, {
    page: asked.page,
    pageSize: asked.page_size,
    cursor: asked.cursor,
    model: asked.model,
    status: asked.status,
    withInput: asked.include_inputs,
    withTotal: asked.include_total,
    after: instantOf(asked.created_after),
    before: instantOf(asked.created_before),
  });
  const items = await Promise.all(jobs.map((job) => describeJob(relay, job)));
  return { page: asked.page, ...(total !== null && { total }), items, next_cursor: next };
}

/** Years 1970 to 9999: beyond, JavaScript writes years in a way that PostgreSQL does not read. */
function instantOf(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const latest = Date.UTC(9999, 0);
  return new Date(Math.min(latest, Math.max(0, Date.parse(text))));
}

/** `POST /api/v3/predictions/delete`: finished predictions with their files. */
export const remove: HandlerOf<'remove'> = async (relay, { body, caller, requestId }) => {
  return { deleted_count: await removeJobs(relay, [...new Set(body.ids)], caller, requestId) };
};

/** Deletes finished jobs of the caller with their files. @returns how many */
export async function removeJobs(
  relay: Relay,
  ids: readonly string[],
  caller: Caller,
  requestId: string,
): Promise<number> {
  const removed = ids.length === 0 ? [] : await relay.jobs.remove(ids, caller.owner);
  for (const job of removed) {
    // The row is deleted, so nothing links to its files; a file that stays only costs space.
    const about = { request_id: requestId, job: job.id };
    await relay.files.removeOf(job).catch((err: unknown) => {
      relay.log.warn({ ...about, err }, 'files of a job were not removed');
    });
  }
  return removed.length;
}

/** `POST …/cancel`: ends a prediction at once; one that has ended stays as it is. */
export const cancel: HandlerOf<'cancel'> = async (relay, { params, caller }) => {
  const job = await relay.jobs.cancel(params.id, caller.owner);
  if (job === null) throw noPrediction(params.id);
  return describeJob(relay, job);
};
