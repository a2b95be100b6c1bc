import type { DeviceOptions, Phase } from '../contract';
import type { SkipReason } from '../contract/v3';
import type { ServedJob } from './api';
import type { Connection, ServingEvent, Skipped } from './connection';

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

/** Labels of the outcomes of a job. */
export const outcomeNames: Readonly<Record<ServedJob['outcome'], string>> = {
  completed: 'Done',
  failed: 'Failed',
  lost: 'Cancelled or taken over',
  released: 'Handed back',
};

/** Why a job was not assigned, as the end of "3 jobs wait, but …". */
const skipSentences: Readonly<Record<SkipReason, string>> = {
  model: 'this server does not assign its jobs to this model',
  size: 'this worker does not support the size',
  loras: 'this worker takes no LoRAs',
  precision: 'this server does not assign its jobs to this precision',
  duration: 'this worker takes only shorter videos',
  needs:
    'this worker does not know something that they ask for, such as loops or end images, lacks a download for it, or has a model that their LoRAs do not fit',
  checker: 'the safety checker is asked for, which this browser does not have',
  optimizer: 'another connected worker has the language model that is asked for',
  preferred: 'another idle worker has a model that comes first for them',
  'back-off': 'an attempt failed, and the next one begins after a pause',
  'not-ready': 'image or LoRAs are still being fetched',
};

/** One sentence for each reason why waiting jobs are not assigned. */
export function skippedSentences(skipped: Skipped): readonly string[] {
  return Object.entries(skipped).map(([reason, count]) => {
    const jobs = count === 1 ? '1 job waits' : `${count} jobs wait`;
    return `${jobs}, but ${skipSentences[reason as SkipReason]}.`;
  });
}
