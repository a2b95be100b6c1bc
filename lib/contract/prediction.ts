import type { ErrorRecord } from './errors';
import type { ProfileName } from './profile';
import type { GenerationResult } from './progress';
import type { Parameters } from './request';

interface PredictionBase {
  /** 32 lower-case hex characters. */
  readonly id: string;
  /** Id of the model's manifest. */
  readonly model: string;
  /** The variant of the model; absent in records from before there was a choice: `standard`. */
  readonly profile?: ProfileName;
  readonly backend: Backend;
  /** As asked, defaults filled in; the seed is already drawn (never −1). */
  readonly parameters: Parameters;
  /** ISO 8601, UTC, milliseconds. */
  readonly createdAt: string;
}

/** A prediction and what is known in each state: no state can hold what it has no use for. */
export type Prediction =
  | (PredictionBase & { readonly status: 'created' })
  | (PredictionBase & { readonly status: 'processing'; readonly startedAt: string })
  | (PredictionBase & {
      readonly status: 'completed';
      readonly startedAt: string;
      readonly completedAt: string;
      readonly result: GenerationResult;
    })
  | (PredictionBase & {
      readonly status: 'failed';
      readonly completedAt: string;
      readonly error: ErrorRecord;
    });

/** Where the model's graphs run. */
export const backends = ['webgpu', 'wasm'] as const;
export type Backend = (typeof backends)[number];
