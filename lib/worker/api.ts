import type {
  DeviceOptions,
  ErrorRecord,
  JobOutcome,
  Phase,
  Precision,
  PromptOptimizationStatus,
  SafetyStatus,
  Size,
} from '../contract';
import type { Connection, ServingEvent } from './connection';

/** Options of a connection. */
export interface ServeOptions {
  /** Origin of the relay, without a path. */
  readonly server: string;
  readonly token: string;
  /** For people: "Chrome on Linux". */
  readonly name: string;
  readonly model: string;
  readonly precision: Precision;
  readonly sizes: readonly Size[];
  readonly device: DeviceOptions;
  /** Base address of the hub that adapters are fetched from. */
  readonly hub: string;
}

/** The lease that a page hands back when it is closed in the middle of a job. */
export interface UnfinishedLease {
  readonly id: string;
  readonly token: string;
}

/** Callbacks of the serving worker. */
export interface ServingListener {
  onEvent(event: ServingEvent): void;
  /** The lease to hand back should the page vanish now; null where there is none to hand back. */
  onLease(lease: UnfinishedLease | null): void;
}

/** The serving worker's face, spoken over Comlink. */
export interface ServingApi {
  /** Connects and serves; resolves when it has ended: by {@link disconnect}, or refused. */
  serve(
    options: ServeOptions,
    onEvent: ServingListener['onEvent'],
    onLease: ServingListener['onLease'],
  ): Promise<void>;
  /** Finishes the current job and takes no other. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the current job, hands its lease back, and goes. */
  disconnect(): Promise<void>;
  /** Tries again now what waits for its time: a lost connection. */
  retryNow(): Promise<void>;
}

/** A job that has ended here; its prompt and image belong to its submitter. */
export interface ServedJob {
  readonly id: string;
  readonly attempt: number;
  /** `lost`: cancelled by its caller, or given to another worker; `released`: handed back. */
  readonly outcome: JobOutcome;
  readonly error: ErrorRecord | null;
  /** Of a finished video, else null. */
  readonly safety: SafetyStatus | null;
  /** Null where no optimisation was asked for, or no video was made. */
  readonly prompt: PromptOptimizationStatus | null;
  readonly seconds: number;
  /** Milliseconds since the epoch. */
  readonly endedAt: number;
}

/** The options of a connection that a program starts. */
export interface ServeConnect {
  readonly token: string;
  readonly model: string;
  readonly name: string;
  readonly device: DeviceOptions;
}

/** Progress of the current job. */
export interface ServeProgress {
  readonly type: 'progress';
  readonly id: string;
  readonly phase: Phase | null;
  readonly step: number;
  readonly steps: number;
}

/** An event that is sent to the program; progress has numbers only. */
export type ServeReport = Exclude<ServingEvent, { type: 'progress' }> | ServeProgress;

/** The functions of the Serve page for programs that control it, such as `npm run worker`. */
export interface ServeApi {
  /**
   * Starts to connect and resolves at once; events are sent to `window.kinoraServing`. Rejects invalid
   * options with an Error whose message is the JSON of an `ErrorRecord`, because browser drivers transfer
   * nothing else of an error.
   */
  connect(options: ServeConnect): Promise<void>;
  pause(): void;
  resume(): void;
  /** Ends the current job, releases its lease and disconnects. */
  disconnect(): void;
  status(): Connection['status'];
}
