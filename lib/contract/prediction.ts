import type { ErrorRecord } from './errors';
import type { Backend } from './kernel-setting';
import type { CheckpointInfo, GenerationResult } from './progress';
import type { DeviceOptions, RunRequest } from './run';

/** The parameters are those of the request, with defaults filled in. The seed is −1 only while it waits for a random one. */
interface PredictionBase extends RunRequest {
  /** 32 lower-case hex characters. */
  readonly id: string;
  /** The device that computed it last. */
  readonly backend: Backend;
  /** Marked by the user; absent where it is not. */
  readonly favourite?: true;
  /** Words of the user on it, in the order in which they were added; absent where there are none. */
  readonly tags?: readonly string[];
  /** Id of the prediction from whose last frame this one starts; absent where the image is one of its own. */
  readonly continues?: string;
  /** When its run began, while it waits when it was added: ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
}

/** A prediction. Each status has exactly the fields that are known in it. */
export type Prediction =
  | (PredictionBase & {
      /** It waits for its turn. */
      readonly status: 'created';
      /** Those that wait run in ascending order. Any number: one that is moved gets one between its neighbours. */
      readonly position: number;
      /** Set if the queue pauses when this one has run. */
      readonly pauseAfter?: true;
      readonly device: DeviceOptions;
    })
  | (PredictionBase & {
      /** A tab works on it, or waits for the GPU with it. */
      readonly status: 'processing';
      /** The latest one; absent before the first. */
      readonly checkpoint?: CheckpointInfo;
    })
  | (PredictionBase & {
      /** It ended before its time and can be resumed. */
      readonly status: 'interrupted';
      readonly interruptedAt: string;
      /** Why: `INTERRUPTED`, `PAUSED`, `DEVICE_LOST`, `OUT_OF_MEMORY` or another fault. */
      readonly error: ErrorRecord;
      readonly checkpoint: CheckpointInfo;
    })
  | (PredictionBase & {
      readonly status: 'completed';
      readonly completedAt: string;
      readonly result: GenerationResult;
      /** The parts that it was cut or joined of, in order; absent in a video as it was made. */
      readonly parts?: readonly VideoPart[];
    })
  | (PredictionBase & {
      readonly status: 'failed';
      readonly completedAt: string;
      readonly error: ErrorRecord;
    });

/** Frames of another prediction's video: from the frame `from`, counted from 0, to before the frame `to`. */
export interface VideoPart {
  readonly id: string;
  readonly prompt: string;
  readonly seed: number;
  readonly from: number;
  readonly to: number;
}

/** A request that waits for its turn. */
export type Created = Extract<Prediction, { status: 'created' }>;

/** A prediction with a result. */
export type Completed = Extract<Prediction, { status: 'completed' }>;
