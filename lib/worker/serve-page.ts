import type { DeviceOptions, Phase } from '../contract';
import type { Connection, ServingEvent } from './connection';

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
