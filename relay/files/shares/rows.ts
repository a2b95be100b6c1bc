import { randomBytes } from 'node:crypto';
import { and, desc, eq, gt, isNull, lte, or, sql } from 'drizzle-orm';
import { ApiError, type Share, type ShareBody, type ShareRecord } from '../../../lib/contract/v3';
import { idForm } from '../../jobs/queries';
import { type JobRow, jobs, type ShareRow, shares } from '../../store/schema';
import type { FilesDependencies } from '../requests';

export type SharedJob = JobRow & { readonly outputKey: string; readonly outputExpiresAt: Date };

export type FoundShare =
  | { readonly kind: 'unknown' }
  /** It has expired or was revoked, or its video or its prediction is gone. */
  | { readonly kind: 'ended' }
  | {
      readonly kind: 'open';
      readonly share: ShareRow;
      readonly job: SharedJob;
      /** When the link ends: with the video at the latest. */
      readonly endsAt: Date;
    };

const nothingShown = {
  withPrompt: false,
  withSettings: false,
  withImage: false,
  allowIndex: false,
} as const;
/** Most links in a list, and of a prompt the characters that are read for it. */
const maxListed = 500;
const maxTitle = 200;

export function createShares({ store: { db }, links }: Pick<FilesDependencies, 'store' | 'links'>) {
  const describe = (share: ShareRow, job: Pick<SharedJob, 'id' | 'outputExpiresAt'>): Share => ({
    id: share.id,
    url: links.share(share.id),
    prediction_id: job.id,
    include: {
      prompt: share.withPrompt,
      settings: share.withSettings,
      image: share.withImage,
    },
    allow_index: share.allowIndex,
    created_at: share.createdAt.toISOString(),
    expires_at: endOf(share, job).toISOString(),
  });
  return {
    /**
     * Makes the link of a job, or changes of the one that it has what is named. An expired link is not opened again,
     * because its address was given for a limited time.
     *
     * @throws ApiError `NOTHING_TO_SHARE`; `NOT_FOUND` when the job was deleted meanwhile
     */
    async share(job: JobRow, { include, expires_in_seconds, allow_index }: ShareBody) {
      if (!hasVideo(job)) throw new ApiError('NOTHING_TO_SHARE');
      const now = new Date();
      const named = {
        ...(include && {
          withPrompt: include.prompt,
          withSettings: include.settings,
          withImage: include.image,
        }),
        ...(allow_index !== undefined && { allowIndex: allow_index }),
        ...(expires_in_seconds !== undefined && {
          expiresAt: new Date(now.getTime() + expires_in_seconds * 1000),
        }),
      };
      const id = randomBytes(16).toString('hex');
      return await db.transaction(async (transaction) => {
        const [kept] = await transaction
          .select({ id: jobs.id })
          .from(jobs)
          .where(eq(jobs.id, job.id))
          .for('key share');
        if (!kept) throw new ApiError('NOT_FOUND');
        await transaction
          .update(shares)
          .set({ revokedAt: now })
          .where(and(currentOf(job.id), lte(shares.expiresAt, now)));
        const [row] = await transaction
          .insert(shares)
          .values({ id, jobId: job.id, ...nothingShown, ...named })
          .onConflictDoUpdate({
            target: shares.jobId,
            targetWhere: isNull(shares.revokedAt),
            // Never empty, which the query builder refuses.
            set: { jobId: job.id, ...named },
          })
          .returning();
        if (!row) throw new Error('The link was not inserted.');
        return describe(row, job);
      });
    },
    /** Ends the link of a job. @returns whether there was one */
    async revoke(jobId: string): Promise<boolean> {
      const revoked = await db
        .update(shares)
        .set({ revokedAt: new Date() })
        .where(currentOf(jobId))
        .returning({ id: shares.id });
      return revoked.length > 0;
    },
    async list(owner: string): Promise<ShareRecord[]> {
      const now = new Date();
      const rows = await db
        .select({
          share: shares,
          job: {
            id: jobs.id,
            attempt: jobs.attempt,
            status: jobs.status,
            outputExpiresAt: jobs.outputExpiresAt,
          },
          title: sql<string>`left(${jobs.input} ->> 'prompt', ${maxTitle})`,
        })
        .from(shares)
        .innerJoin(jobs, eq(jobs.id, shares.jobId))
        .where(
          and(
            eq(jobs.owner, owner),
            isNull(shares.revokedAt),
            or(isNull(shares.expiresAt), gt(shares.expiresAt, now)),
            gt(jobs.outputExpiresAt, now),
            sql`${jobs.outputKey} is not null`,
          ),
        )
        .orderBy(desc(shares.createdAt))
        .limit(maxListed);
      return rows.flatMap(({ share, job, title }) => {
        const { outputExpiresAt } = job;
        if (outputExpiresAt === null) return [];
        const uploaded = isUploaded(job);
        return [{ ...describe(share, { ...job, outputExpiresAt }), title, uploaded }];
      });
    },
    async find(id: string): Promise<FoundShare> {
      if (!idForm.test(id)) return { kind: 'unknown' };
      const [row] = await db
        .select({ share: shares, job: jobs })
        .from(shares)
        .leftJoin(jobs, eq(jobs.id, shares.jobId))
        .where(eq(shares.id, id));
      if (!row) return { kind: 'unknown' };
      const { share, job } = row;
      if (share.revokedAt !== null || job === null || !hasVideo(job)) return { kind: 'ended' };
      const endsAt = endOf(share, job);
      if (endsAt.getTime() <= Date.now()) return { kind: 'ended' };
      return { kind: 'open', share, job, endsAt };
    },
  };
}

export type Shares = ReturnType<typeof createShares>;

function currentOf(jobId: string) {
  return and(eq(shares.jobId, jobId), isNull(shares.revokedAt));
}

export function hasVideo(job: JobRow): job is SharedJob {
  const { status, outputKey, outputExpiresAt } = job;
  if (status !== 'completed' || outputKey === null || outputExpiresAt === null) return false;
  return outputExpiresAt.getTime() > Date.now();
}

/** Whether the studio uploaded the video of a job: no worker ever had it. */
export function isUploaded({ status, attempt }: Pick<JobRow, 'status' | 'attempt'>): boolean {
  return status === 'completed' && attempt === 0;
}

function endOf(
  { expiresAt }: ShareRow,
  { outputExpiresAt }: Pick<SharedJob, 'outputExpiresAt'>,
): Date {
  return expiresAt !== null && expiresAt < outputExpiresAt ? expiresAt : outputExpiresAt;
}
