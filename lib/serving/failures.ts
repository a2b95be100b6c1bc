import { type ErrorCode, type KinoraError, toKinoraError } from '../contract/errors';
import type { Failure } from '../contract/v3/worker';

/** Longest message that the protocol takes, in characters. */
const longestMessage = 500;

/**
 * Whether another attempt may succeed where this one failed, for every code:
 *
 * - `never`: the request itself is at fault, and would fail anywhere;
 * - `elsewhere`: something passed, or another worker may do better;
 * - `unfit`: as `elsewhere`, and this worker would fail at the next job too, so it pauses itself.
 */
const prospects: Readonly<Record<ErrorCode, 'never' | 'elsewhere' | 'unfit'>> = {
  IMAGE_MISSING: 'never',
  IMAGE_EMPTY: 'never',
  IMAGE_TOO_LARGE: 'never',
  IMAGE_TOO_MANY_PIXELS: 'never',
  IMAGE_UNREADABLE: 'never',
  IMAGE_TRUNCATED: 'never',
  IMAGE_UNREACHABLE: 'elsewhere',
  PROMPT_EMPTY: 'never',
  PARAMETER_INVALID: 'never',
  REQUEST_INVALID: 'never',
  MODEL_UNKNOWN: 'unfit',
  MODEL_MANIFEST_INVALID: 'unfit',
  MODEL_FILE_MISSING: 'unfit',
  MODEL_FILE_INVALID: 'unfit',
  MODEL_FILE_TRUNCATED: 'unfit',
  MODEL_CONFIG_INVALID: 'unfit',
  MODEL_NOT_INSTALLED: 'unfit',
  MODEL_WRONG_KIND: 'unfit',
  MODEL_BUSY: 'unfit',
  TENSOR_MISSING: 'unfit',
  TENSOR_SHAPE: 'unfit',
  TENSOR_EXTRA: 'unfit',
  TENSOR_DTYPE: 'unfit',
  ADDRESS_INVALID: 'never',
  HUB_UNREACHABLE: 'elsewhere',
  HUB_NOT_FOUND: 'never',
  HUB_DENIED: 'never',
  HUB_BUSY: 'elsewhere',
  HUB_ANSWER_INVALID: 'elsewhere',
  DOWNLOAD_CORRUPT: 'elsewhere',
  LORA_MISSING: 'never',
  LORA_INVALID: 'never',
  LORA_WRONG_BASE: 'never',
  WEBGPU_MISSING: 'unfit',
  ADAPTER_MISSING: 'unfit',
  ADAPTER_SOFTWARE: 'unfit',
  GPU_UNRELIABLE: 'unfit',
  DEVICE_LOST: 'elsewhere',
  OUT_OF_MEMORY: 'elsewhere',
  LATENTS_NOT_FINITE: 'never',
  ENCODER_FAILED: 'elsewhere',
  STORAGE_FULL: 'unfit',
  CANCELLED: 'elsewhere',
  INTERRUPTED: 'elsewhere',
  BUSY: 'elsewhere',
  VIDEO_UNREADABLE: 'elsewhere',
  FILE_UNREADABLE: 'elsewhere',
  FILE_UNWRITABLE: 'unfit',
  BROWSER_MISSING: 'unfit',
  INTERNAL: 'elsewhere',
};

/** What the relay is told of a failure. */
export function describeFailure(thrown: unknown): Omit<Failure, 'lease_token'> {
  const { code, message } = toKinoraError(thrown);
  const retryable = prospects[code] !== 'never';
  return { code, message: message.slice(0, longestMessage), retryable };
}

/** Whether this worker would fail at the next job for the same reason. */
export function isUnfit(error: KinoraError): boolean {
  return prospects[error.code] === 'unfit';
}
