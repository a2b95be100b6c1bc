import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type {
  ClaimAnswer,
  Completion,
  DeliveryRecord,
  Failure,
  Heartbeat,
  LeaseAnswer,
  PredictionInput,
  PredictionStatus,
  Submission,
  WorkerDeclaration,
  WorkerRecord,
} from '../lib/contract/v3';
import type { Caller } from './access/caller';
import type { Keys } from './access/keys';
import type { Config } from './config';
import type { Guard } from './guard';
import type { DeliveryRow, JobImage, JobLora, JobRow, UploadRow, WorkerRow } from './store/schema';
import type { Database, Store } from './store/store';

/** `relay/limits`: how often, and how much at a time. */
export interface Limits {
  /** Counts one request of an address. @throws ApiError `RATE_LIMITED` */
  address(address: string): Promise<void>;
  /** Counts a wrong key of an address. @throws ApiError `RATE_LIMITED` when there were too many */
  badKey(address: string): Promise<void>;
  /**
   * Counts one request of a key.
   *
   * @returns the `RateLimit-*` headers of the answer
   * @throws ApiError `RATE_LIMITED` with `Retry-After`
   */
  key(caller: Caller, kind: 'submit' | 'read'): Promise<Readonly<Record<string, string>>>;
  close(): Promise<void>;
}

/** `relay/files`: large bytes, on disk or in a bucket. Keys are made by us: `outputs/ab/….mp4`. */
export interface BlobStore {
  readonly kind: 'disk' | 's3';
  /** Writes a blob whole or not at all, with its SHA-256 on the way. @throws ApiError `TOO_LARGE` */
  put(
    key: string,
    source: Readable | Uint8Array,
    options: { type: string; maxBytes: number },
  ): Promise<{ bytes: number; sha256: string }>;
  /** Takes over a file of this machine, which is gone after it. */
  putFile(key: string, file: string, type: string): Promise<void>;
  /** @param range first and last byte, both counted */
  read(
    key: string,
    range?: { first: number; last: number },
  ): Promise<{ body: Readable; bytes: number }>;
  stat(key: string): Promise<{ bytes: number } | null>;
  remove(key: string): Promise<void>;
  /** A readiness check. @throws ApiError `STORAGE_DOWN` */
  ping(): Promise<void>;
}

/** `relay/files`: absolute addresses of this installation, HMAC-signed where no key is asked for. */
export interface Links {
  readonly publicUrl: string;
  /** Address of a prediction's result. */
  prediction(id: string): string;
  /** Address of the video; null where there is none or it has expired. */
  output(job: Omit<JobRow, 'input'>): string | null;
  /** Path (no origin) for workers: the image of a job, or one of its adapters. */
  workerImage(job: JobRow): string;
  workerLora(job: JobRow, index: number): string;
  /** Where an upload's bytes go, and where they can be had. */
  uploadTarget(upload: UploadRow): string;
  uploadDownload(upload: UploadRow): string;
  /** The upload that one of our own download links names; null for any other address. */
  uploadOf(url: string): string | null;
}

/** A handler of the Node server for what does not go through Next. `params` come from the path. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  params: Readonly<Record<string, string>>,
) => Promise<void>;

/** `relay/intake`: a submission's files, before a worker sees it. */
export interface Intake {
  /**
   * Looks at image and adapters of a submission. A data URI and an own upload are checked and stored at
   * once; another address is left to {@link run}.
   *
   * @returns what goes into the job's row
   * @throws ApiError `INVALID_IMAGE` for a data URI or upload that is no usable image,
   * `INVALID_PARAMETER` for an address or adapter path that cannot be read
   */
  accept(
    jobId: string,
    submission: Submission,
    caller: Caller,
  ): Promise<{
    input: PredictionInput;
    image: JobImage | null;
    loras: readonly JobLora[];
    ready: boolean;
  }>;
  /** Fetches what waits, on this node, until the signal; a failure ends the job with code 1402. */
  run(signal: AbortSignal): Promise<void>;
}

/** `relay/files`: what callers upload, what workers upload, and who may read it. */
export interface Files {
  readonly blobs: BlobStore;
  readonly links: Links;
  ticket(
    caller: Caller,
    input: { filename: string; size: number; content_type?: string | undefined },
  ): Promise<{ upload: UploadRow; headers: Readonly<Record<string, string>> }>;
  /** Handlers of the Node server, by path template and method; keys such as `PUT /files/uploads/{id}`. */
  readonly routes: Readonly<Record<string, NodeHandler>>;
  /**
   * The uploaded video of a lease, checked as an MP4 and put where outputs are kept.
   *
   * @throws ApiError `OUTPUT_REJECTED`, `CONFLICT` when it is not all there
   */
  takeOutput(job: JobRow, completion: Completion): Promise<{ key: string; bytes: number }>;
  /** Removes what is past its time: outputs (the record says so), uploads, parts. Bounded per call. */
  sweep(): Promise<void>;
  /** Removes every file of a job. */
  removeOf(job: Pick<JobRow, 'id' | 'owner' | 'image' | 'outputKey'>): Promise<void>;
}

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

/** How a terminal status is told to the outside, in the transaction that sets it. */
export type OutboxRow = (
  job: JobRow,
) => typeof import('./store/schema').deliveries.$inferInsert | null;

/** A job as lists have it: without its parameters where nobody asked for them. */
export type ListedJob = Omit<JobRow, 'input'> & { readonly input: JobRow['input'] | null };

/** A job that a node has taken for intake; `intakeUntil` as it was taken is the token. */
export type TakenIntake = Pick<JobRow, 'id' | 'intakeUntil'>;

/** `relay/jobs`: the one place that changes a job's row. Every method is one transaction. */
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

/** `relay/webhooks`: the outbox and its deliveries. */
export interface Webhooks {
  /** @throws ApiError `INVALID_WEBHOOK` */
  checkUrl(url: string): string;
  readonly outboxRow: OutboxRow;
  /** Newest first; of every owner where none is named. */
  list(
    owner: string | undefined,
    query: { page: number; pageSize: number; status?: DeliveryRow['status'] | undefined },
  ): Promise<DeliveryRecord[]>;
  /** @throws ApiError `NOT_FOUND` */
  replay(id: string, owner?: string): Promise<DeliveryRecord>;
  /** Delivers what is due until the signal; then finishes what is under way. */
  run(signal: AbortSignal): Promise<void>;
}

/** A worker's request for a job. */
export interface ClaimRequest {
  readonly caller: Caller;
  readonly worker: WorkerDeclaration;
  /** It is there, and takes no job now. */
  readonly paused: boolean;
}

/** `relay/jobs`: claims that wait for a job on this node. */
export interface HeldClaims {
  /** How many this node holds. */
  readonly count: number;
  /** No more are held: a claim is answered at once. */
  readonly isFull: boolean;
  /** Whether a claim of this worker is held here. */
  isHeld(caller: Caller, worker: WorkerDeclaration): boolean;
  /**
   * Gives a job at once where there is one, else the moment one comes. A claim of the same worker that is
   * held already ends without a job.
   *
   * @param ms how long it is held, in milliseconds
   * @param client aborts when the connection is gone
   * @returns null when the time is over, the client has gone, or the node is being stopped
   */
  claim(request: ClaimRequest, ms: number, client: AbortSignal): Promise<JobRow | null>;
  close(): Promise<void>;
}

/** `relay/jobs`: the workers of all nodes, for people. */
export interface Workers {
  /** A worker has claimed, or waits. */
  seen(caller: Caller, worker: WorkerDeclaration, state: WorkerRow['state']): Promise<void>;
  /** A heartbeat of a job: its worker lives and is busy. */
  heartbeat(jobId: string): Promise<void>;
  /** One more job done by the worker that had it. */
  done(jobId: string): Promise<void>;
  /** The connection of a waiting worker has ended. */
  gone(caller: Caller, worker: WorkerDeclaration): Promise<void>;
  /** Those heard of within a minute, on any node; of every owner where none is named. */
  list(owner?: string): Promise<WorkerRecord[]>;
  /** Forgets workers that were not heard of for a day. */
  sweep(): Promise<void>;
}

/** `relay/observe`: what happened, in numbers. */
export interface Metrics {
  readonly registry: Registry;
  request(route: string, status: number, seconds: number): void;
  attempt(outcome: 'completed' | 'failed' | 'requeued' | 'released' | 'expired'): void;
  delivery(outcome: 'delivered' | 'retry' | 'exhausted', seconds: number): void;
  inference(seconds: number): void;
}

/** Everything of one node. Made by `openRelay`, found by the route handlers through the door. */
export interface Relay {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: Store;
  readonly keys: Keys;
  readonly limits: Limits;
  readonly guard: Guard;
  readonly files: Files;
  readonly intake: Intake;
  readonly jobs: Jobs;
  readonly webhooks: Webhooks;
  readonly heldClaims: HeldClaims;
  readonly workers: Workers;
  /** Aborted when the node stops: no new claims, held answers end. */
  readonly stopping: AbortSignal;
}

export type { Caller } from './access/caller';
export type { Keys } from './access/keys';
export { type Guard, GuardError } from './guard';
export type { Database };
