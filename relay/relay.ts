import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Completion } from '../lib/contract/v3';
import type { Caller } from './access/caller';
import type { Keys } from './access/keys';
import type { Config } from './config';
import type { Guard } from './guard';
import type { Intake } from './intake';
import type { HeldClaims, Jobs, Workers } from './jobs';
import type { Limits } from './limits';
import type { JobRow, UploadRow } from './store/schema';
import type { Database, Store } from './store/store';
import type { Webhooks } from './webhooks';

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
