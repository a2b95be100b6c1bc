import type {
  ClaimAnswer,
  Completion,
  Failure,
  Heartbeat,
  LeaseAnswer,
  PredictionInput,
  PredictionStatus,
  WorkerDeclaration,
} from '../../lib/contract/v3';
import type { Caller } from '../access/caller';
import type { deliveries, JobImage, JobLora, JobRow } from '../store/schema';

/** A job to be inserted. */
export interface NewJob {
  readonly id: string;
  readonly caller: Caller;
  readonly model: string;
  readonly webhookUrl: string | null;
  readonly input: PredictionInput;
  readonly image: JobImage | null;
  readonly loras: readonly JobLora[];
  readonly ready: boolean;
  readonly idempotency: Idempotency | null;
}

/** The `Idempotency-Key` of a submission, and what the submission is compared by. */
export interface Idempotency {
  readonly key: string;
  /** SHA-256, hex. */
  readonly hash: string;
}

/** The webhook row of a terminal status, for the transaction that sets it; null where none is wanted. */
export type OutboxRow = (job: JobRow) => typeof deliveries.$inferInsert | null;

/** A job as lists have it: without its parameters where nobody asked for them. */
export type ListedJob = Omit<JobRow, 'input'> & { readonly input: JobRow['input'] | null };

/** A job that a node has taken for intake; `intakeUntil` as it was taken is the token. */
export type TakenIntake = Pick<JobRow, 'id' | 'intakeUntil'>;

/** The one place that changes a job's row. Every method is one transaction. */
export interface Jobs {
  /**
   * @returns the new job; an earlier one (with another id) that has the same `Idempotency-Key`
   * @throws ApiError `TOO_MANY_JOBS`, `IDEMPOTENCY_MISMATCH`
   */
  submit(job: NewJob): Promise<JobRow>;
  /**
   * The job that this key submitted under an `Idempotency-Key` within a day; null where there is none.
   *
   * @throws ApiError `IDEMPOTENCY_MISMATCH` where that was another request
   */
  submittedBefore(keyId: string, idempotency: Idempotency): Promise<JobRow | null>;
  get(id: string, owner?: string): Promise<JobRow | null>;
  list(
    owner: string,
    query: {
      page: number;
      pageSize: number;
      model?: string | undefined;
      status?: PredictionStatus | undefined;
      after?: Date | undefined;
      before?: Date | undefined;
      /** Whether the parameters are read too, which may be 80 kB each. Default false. */
      withInput?: boolean;
    },
  ): Promise<ListedJob[]>;
  /** Deletes finished jobs of an owner. @returns the deleted rows, for their files */
  remove(ids: readonly string[], owner: string): Promise<JobRow[]>;
  /** Jobs that come before this one among those its workers choose from; 0 is next. */
  position(job: JobRow): Promise<number>;
  unfinishedOf(keyId: string): Promise<number>;

  /** The first waiting job that fits the worker, under a new lease; null where there is none. */
  claimNext(caller: Caller, worker: WorkerDeclaration): Promise<JobRow | null>;
  /** Why a worker is given nothing: the first waiting jobs, counted by the first reason of each. */
  skippedFor(caller: Caller, worker: WorkerDeclaration): Promise<ClaimAnswer['skipped']>;
  /** {@link claimNext}, with the reasons why nothing was given. */
  claim(
    caller: Caller,
    worker: WorkerDeclaration,
  ): Promise<{ job: JobRow | null; skipped: ClaimAnswer['skipped'] }>;
  /**
   * @param by key id of the caller's worker token, where there is a caller: the lease is that token's
   * alone (as in all with a lease token)
   * @throws ApiError `LEASE_LOST` (as do all with a lease token)
   */
  heartbeat(
    id: string,
    token: string,
    heartbeat: Omit<Heartbeat, 'lease_token'>,
    by?: string,
  ): Promise<LeaseAnswer>;
  lease(id: string, token: string, by?: string): Promise<JobRow>;
  /** With the outbox row, in one transaction. The same completion again answers the same. */
  complete(
    id: string,
    token: string,
    result: Omit<Completion, 'lease_token'> & { outputKey: string },
    by?: string,
  ): Promise<JobRow>;
  /** Requeues where another attempt may succeed and is left, else ends it. */
  fail(
    id: string,
    token: string,
    failure: Omit<Failure, 'lease_token'>,
    by?: string,
  ): Promise<JobRow>;
  release(id: string, token: string, by?: string): Promise<JobRow>;
  /** Ends it at once as failed, "cancelled by user"; a finished job stays as it is. */
  cancel(id: string, owner: string): Promise<JobRow | null>;

  /** Takes waiting jobs whose files are to be fetched, for this node and `seconds`. */
  takeIntake(limit: number, seconds: number): Promise<JobRow[]>;
  /** Of whoever has the files first. @returns null where the job no longer waits for them */
  intakeDone(id: string, image: JobImage, loras: readonly JobLora[]): Promise<JobRow | null>;
  /** @returns null, with nothing changed, where it is no longer this node's to fail */
  intakeFailed(taken: TakenIntake, message: string): Promise<JobRow | null>;
  /**
   * Gives a taken job back after `seconds`, its attempt too: that it failed was no fault of its files.
   * Changes nothing where another has taken it over.
   */
  intakeReturned(taken: TakenIntake, seconds: number): Promise<void>;

  /**
   * Requeues or fails what has lost its lease or passed its deadline. Any node, any number at once.
   *
   * @param which lost leases alone, or all but them; everything where absent
   */
  sweep(which?: 'leases' | 'others'): Promise<{ requeued: number; failed: number }>;
  /** Queue depth and oldest age in seconds, for the metrics. */
  depth(): Promise<{ waiting: number; processing: number; oldestSeconds: number }>;
  preview(id: string): Promise<{ step: number; image: string } | null>;
}
