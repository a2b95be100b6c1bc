import { createHash } from 'node:crypto';
import { and, eq, getTableColumns, inArray, type SQL, sql } from 'drizzle-orm';
import { ApiError, type Submission } from '../../lib/contract/v3';
import { storageErrors } from '../store/errors';
import { idempotency } from '../store/schema';
import type { Store } from '../store/store';

/** How long an answer is kept for its key. */
const keptMs = 24 * 3_600_000;
/** A row without its job, older than this, belongs to a request that died. */
const handledMs = 60_000;

/** By the database's clock: nodes need not agree about the time. */
const ageMs = sql`(extract(epoch from now() - ${idempotency.createdAt}) * 1000)::float8`.mapWith(
  Number,
);

/** What a submission with an `Idempotency-Key` is compared by. */
export interface IdempotentRequest {
  readonly keyId: string;
  readonly idempotencyKey: string;
  readonly bodyHash: string;
}

/** The key of a request's header; null where there is none. @throws ApiError `INVALID_PARAMETER` */
export function idempotencyKeyOf(request: Request): string | null {
  const key = request.headers.get('idempotency-key');
  if (key === null || key === '') return null;
  if (key.length <= 255) return key;
  throw new ApiError('INVALID_PARAMETER', 'Idempotency-Key must have at most 255 characters.', {
    details: [{ field: 'Idempotency-Key', message: 'It must have at most 255 characters.' }],
  });
}

/** SHA-256 over model, webhook and the body as it was understood: the order of fields does not count. */
export function hashOf(model: string, webhookUrl: string | null, submission: Submission): string {
  return createHash('sha256')
    .update(JSON.stringify([model, webhookUrl, submission]))
    .digest('hex');
}

/**
 * Takes the key for a job that is about to be submitted, or finds the job that has it. The id is
 * written down before the job: so a crash between the two leaves a row that time frees, and never
 * a second job (v3-api.md §6).
 *
 * @param exists whether there is a job with this id
 * @returns `mine` to submit under `jobId`; else the job with this id is the answer
 * @throws ApiError `IDEMPOTENCY_MISMATCH`, `IDEMPOTENCY_IN_FLIGHT`
 */
export async function reserve(
  store: Store,
  request: IdempotentRequest,
  jobId: string,
  exists: (id: string) => Promise<boolean>,
): Promise<{ mine: boolean; jobId: string }> {
  const { db } = store;
  const { keyId, idempotencyKey, bodyHash } = request;
  const row = and(eq(idempotency.keyId, keyId), eq(idempotency.idempotencyKey, idempotencyKey));
  // Twice at most: after a row that is past its time has been taken away.
  for (let round = 0; round < 2; round++) {
    const inserted = await storageErrors(() =>
      db
        .insert(idempotency)
        .values({ ...request, jobId })
        .onConflictDoNothing()
        .returning(),
    );
    if (inserted.length > 0) return { mine: true, jobId };
    const [found] = await storageErrors(() =>
      db
        .select({ ...getTableColumns(idempotency), ageMs })
        .from(idempotency)
        .where(row),
    );
    if (found === undefined) continue;
    if (found.ageMs < keptMs) {
      if (found.bodyHash !== bodyHash) throw new ApiError('IDEMPOTENCY_MISMATCH');
      if (found.jobId !== null && (await exists(found.jobId))) {
        return { mine: false, jobId: found.jobId };
      }
      if (found.ageMs < handledMs) break;
    }
    // Only the row that was seen: another request may have replaced it meanwhile.
    await storageErrors(() =>
      db.delete(idempotency).where(and(row, eq(idempotency.createdAt, found.createdAt))),
    );
  }
  throw inFlight();
}

/**
 * Says once more that a key is ours, right before its job is inserted, and takes it for as long again: a
 * request that was busy for longer than a key waits (a large image, a slow bucket) may have lost it to
 * another try, whose job is the one.
 *
 * @throws ApiError `IDEMPOTENCY_IN_FLIGHT` when it is another's
 */
export async function confirm(
  store: Store,
  request: IdempotentRequest,
  jobId: string,
): Promise<void> {
  const confirmed = await storageErrors(() =>
    store.db
      .update(idempotency)
      .set({ createdAt: sql`now()` })
      .where(heldBy(request, jobId))
      .returning({ jobId: idempotency.jobId }),
  );
  if (confirmed.length === 0) throw inFlight();
}

/** Gives the key back after a refused submission: what is put right may be sent under it again. */
export async function giveBack(
  store: Store,
  request: IdempotentRequest,
  jobId: string,
): Promise<void> {
  await storageErrors(() => store.db.delete(idempotency).where(heldBy(request, jobId)));
}

/** Frees the keys of deleted jobs: there is no first answer any more that could be given again. */
export async function forget(store: Store, jobIds: readonly string[]): Promise<void> {
  if (jobIds.length === 0) return;
  await storageErrors(() => store.db.delete(idempotency).where(inArray(idempotency.jobId, jobIds)));
}

/** The row of a key, where it still stands for this job. */
function heldBy({ keyId, idempotencyKey }: IdempotentRequest, jobId: string): SQL | undefined {
  return and(
    eq(idempotency.keyId, keyId),
    eq(idempotency.idempotencyKey, idempotencyKey),
    eq(idempotency.jobId, jobId),
  );
}

/** The answer to come back for. */
export function inFlight(): ApiError {
  return new ApiError('IDEMPOTENCY_IN_FLIGHT', undefined, { headers: { 'Retry-After': '1' } });
}

/** Removes keys past their 24 h. Any node, at any time. */
export async function sweepIdempotency(store: Store): Promise<void> {
  await storageErrors(() => store.db.delete(idempotency).where(sql`${ageMs} >= ${keptMs}`));
}
