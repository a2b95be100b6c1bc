import { type ErrorCode, KinoraError, toKinoraError } from '../contract';
import { ApiError, type Failure } from '../contract/v3';
import { isTransient, TransportError } from './transport-error';

type Prospect = 'never' | 'elsewhere' | 'suspect' | 'unfit';

/** Longest message that the protocol takes, in characters. */
const longestMessage = 500;

/**
 * Whether another attempt may succeed where this one failed, for every code:
 *
 * - `never`: the request itself is at fault, and would fail anywhere;
 * - `elsewhere`: something passed that says nothing of this worker;
 * - `suspect`: as `elsewhere`, but it may be this worker: where it happens again and again, it is;
 * - `unfit`: as `elsewhere`, and this worker would fail at the next job too, so it pauses itself.
 */
const prospects: Readonly<Record<ErrorCode, Prospect>> = {
  IMAGE_MISSING: 'never',
  IMAGE_EMPTY: 'never',
  IMAGE_TOO_LARGE: 'never',
  IMAGE_TOO_MANY_PIXELS: 'never',
  IMAGE_UNREADABLE: 'never',
  IMAGE_HEIC: 'never',
  IMAGE_TRUNCATED: 'never',
  IMAGE_UNREACHABLE: 'elsewhere',
  SHARE_UNREADABLE: 'never',
  SHARED_FILES_LOST: 'never',
  PROMPT_EMPTY: 'never',
  PROMPT_REFUSED: 'never',
  PARAMETER_INVALID: 'never',
  REQUEST_INVALID: 'never',
  LOOP_WITH_LAST_IMAGE: 'never',
  LAST_IMAGE_BEYOND_END: 'never',
  MODEL_UNKNOWN: 'unfit',
  MODEL_MANIFEST_INVALID: 'unfit',
  MODEL_FILE_MISSING: 'unfit',
  MODEL_FILE_INVALID: 'unfit',
  MODEL_FILE_TRUNCATED: 'unfit',
  MODEL_CONFIG_INVALID: 'unfit',
  MODEL_NOT_INSTALLED: 'unfit',
  MODEL_WRONG_KIND: 'unfit',
  MODEL_BUSY: 'unfit',
  LANGUAGE_MODEL_FAILED: 'suspect',
  TENSOR_MISSING: 'unfit',
  TENSOR_SHAPE: 'unfit',
  TENSOR_EXTRA: 'unfit',
  TENSOR_DTYPE: 'unfit',
  ADDRESS_INVALID: 'never',
  HUB_UNREACHABLE: 'elsewhere',
  LINK_UNREACHABLE: 'elsewhere',
  HUB_NOT_FOUND: 'never',
  HUB_DENIED: 'never',
  HUB_BUSY: 'elsewhere',
  HUB_ANSWER_INVALID: 'elsewhere',
  DOWNLOAD_CORRUPT: 'elsewhere',
  TERMS_NOT_ACCEPTED: 'unfit',
  LORA_MISSING: 'never',
  LORA_INVALID: 'never',
  LORA_WRONG_BASE: 'never',
  WEBGPU_MISSING: 'unfit',
  ADAPTER_MISSING: 'unfit',
  ADAPTER_SOFTWARE: 'unfit',
  GPU_UNRELIABLE: 'unfit',
  KERNELS_UNAVAILABLE: 'unfit',
  DEVICE_LOST: 'suspect',
  OUT_OF_MEMORY: 'suspect',
  LATENTS_NOT_FINITE: 'never',
  CHECK_FAILED: 'suspect',
  ENCODER_FAILED: 'suspect',
  STORAGE_FULL: 'unfit',
  STORAGE_BLOCKED: 'unfit',
  STORAGE_MISSING: 'unfit',
  CANCELLED: 'elsewhere',
  INTERRUPTED: 'elsewhere',
  PAUSED: 'elsewhere',
  CHECKPOINT_INVALID: 'elsewhere',
  CHECKPOINT_MISMATCH: 'elsewhere',
  BUSY: 'elsewhere',
  VIDEO_UNREADABLE: 'suspect',
  SCRIPT_REFUSED: 'unfit',
  SERVER_UNREACHABLE: 'elsewhere',
  AUDIO_UNREADABLE: 'never',
  FILE_UNREADABLE: 'suspect',
  FILE_UNWRITABLE: 'unfit',
  NOTIFICATIONS_DENIED: 'never',
  BROWSER_MISSING: 'unfit',
  INTERNAL: 'suspect',
};

/** A failure of the work, or of the relay, as one of ours. */
export function inWords(thrown: unknown): KinoraError {
  if (thrown instanceof TransportError) {
    return new KinoraError('INTERRUPTED', `The connection was lost: ${thrown.message}.`);
  }
  if (!(thrown instanceof ApiError)) return toKinoraError(thrown);
  if (thrown.code === 'TOO_LARGE') {
    const sentence = 'The video is larger than the server takes.';
    return new KinoraError('PARAMETER_INVALID', sentence, {
      remedy: 'Ask for a shorter video or a smaller size.',
    });
  }
  if (isRejected(thrown)) {
    return new KinoraError('ENCODER_FAILED', `The server rejects the video: ${thrown.message}`);
  }
  const sentence = `The server did not take it: ${thrown.message}`;
  const code = isTransient(thrown) ? 'INTERRUPTED' : 'INTERNAL';
  return new KinoraError(code, sentence, { remedy: thrown.remedy });
}

/** The report of a failure to the relay, from what was thrown. */
export function describeFailure(thrown: unknown): Omit<Failure, 'lease_token'> {
  const { code, message } = inWords(thrown);
  // The same seed would make the same video again.
  const retryable = prospects[code] !== 'never' && !isRejected(thrown);
  return { code, message: message.slice(0, longestMessage), retryable };
}

function isRejected(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.code === 'OUTPUT_REJECTED';
}

/** What an adapter may bring about by its size, on a worker that is in order. */
const ofAdapters: readonly ErrorCode[] = ['OUT_OF_MEMORY', 'INTERNAL'];

/** Suspect failures in a row after which it is the worker. */
const suspectsInARow = 3;

/**
 * Judges a worker by how its jobs end: one that cannot do its work does not go through the attempts of other people's
 * jobs. Faults of a caller or a hub never count: with sharing, any key could otherwise switch off every worker.
 */
export class Fitness {
  #suspects = 0;

  /**
   * @param error null for a job that was completed
   * @param adapters whether its caller had brought some
   * @returns whether the worker should take itself out
   */
  judge(error: KinoraError | null, adapters = false): boolean {
    if (error && adapters && ofAdapters.includes(error.code)) return false;
    const prospect = error === null ? 'never' : prospects[error.code];
    // A request that is at fault was found so by a worker that works.
    if (prospect === 'never') this.#suspects = 0;
    if (prospect === 'suspect') this.#suspects += 1;
    return prospect === 'unfit' || this.#suspects >= suspectsInARow;
  }

  /** Somebody looked after it. */
  reset(): void {
    this.#suspects = 0;
  }
}
