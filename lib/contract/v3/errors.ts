import { z } from 'zod';

/**
 * Every way in which the API refuses, each with its HTTP status, one sentence and a remedy.
 * Server, documentation and tests render from this table and nowhere else.
 */
const table = {
  INVALID_JSON: [400, 'The body is not JSON.', 'Send one JSON object as the body.'],
  INVALID_PARAMETER: [400, 'A parameter is missing or out of its range.', 'See `details`.'],
  INVALID_WEBHOOK: [
    400,
    'The webhook is not a public https URL.',
    'Give an https URL that can be reached from the internet.',
  ],
  INVALID_IMAGE: [
    400,
    'The image cannot be used.',
    'Use a JPEG, PNG, WebP, AVIF or GIF image of at most 20 MB and 40 megapixels.',
  ],
  UNAUTHORIZED: [
    401,
    'The API key is missing or not valid.',
    'Send the header `Authorization: Bearer <API_KEY>`.',
  ],
  FORBIDDEN: [403, 'This key may not do that.', 'Use a key with the scope that `details` names.'],
  NOT_FOUND: [404, 'There is nothing here.', 'Compare the path and the id with the documentation.'],
  METHOD_NOT_ALLOWED: [405, 'This method is not for this path.', 'See the header `Allow`.'],
  CONFLICT: [409, 'This does not fit the state it is in.', 'Read the state and decide again.'],
  LEASE_LOST: [
    409,
    'The lease is no longer this worker’s.',
    'Stop the work on this job; it has ended, or another worker has it.',
  ],
  OUTPUT_REJECTED: [
    422,
    'The uploaded file is not the video that was asked for.',
    'Upload the whole file again, or fail the job.',
  ],
  IDEMPOTENCY_MISMATCH: [
    422,
    'This idempotency key was used with another body.',
    'Use a new key for a new request.',
  ],
  TOO_LARGE: [413, 'The body is too large.', 'Stay below the limit that `details` names.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'This content type is not accepted.', 'Send application/json.'],
  RATE_LIMITED: [429, 'Too many requests.', 'Wait for the seconds that `Retry-After` names.'],
  TOO_MANY_JOBS: [
    429,
    'This key has as many unfinished predictions as it may have.',
    'Wait until one has ended, or cancel one.',
  ],
  INTERNAL: [500, 'Something went wrong inside Kinora.', 'Try again; if it stays, report it.'],
  STORAGE_DOWN: [
    503,
    'The storage does not answer.',
    'Try again in a few seconds, with the same Idempotency-Key.',
  ],
  SHUTTING_DOWN: [503, 'The server is being stopped.', 'Try again in a few seconds.'],
} as const satisfies Record<string, readonly [status: number, message: string, remedy: string]>;

/** What a 503 says in `Retry-After`, in seconds: a database or a node is started again in less. */
const retrySeconds = 5;

/** Stable identifier of a refusal, `error_code` on the wire. */
export type ApiErrorCode = keyof typeof table;
export const apiErrorCodes = Object.keys(table) as ApiErrorCode[];

/** One wrong field. */
export interface ApiErrorDetail {
  /** Dotted path, such as `loras.0.scale`. */
  readonly field: string;
  /** What is allowed: "a whole number from 1 to 40". */
  readonly message: string;
}

/** Body of every refusal. */
export const apiErrorSchema = z.object({
  code: z.int().describe('The HTTP status.'),
  message: z.string().describe('One sentence, and its remedy where there is one.'),
  error_code: z
    .enum(apiErrorCodes as [ApiErrorCode, ...ApiErrorCode[]])
    .describe('Stable; decide by it and not by the message.'),
  request_id: z.string().describe('The same as in the header `X-Request-Id` and in the logs.'),
  details: z
    .array(
      z.object({
        field: z.string().describe('Dotted path, such as `loras.0.scale`.'),
        message: z.string().describe('What is allowed.'),
      }),
    )
    .optional()
    .describe('Each wrong field.'),
});
export type ApiErrorBody = z.output<typeof apiErrorSchema>;

/** The one error class of the API and of the worker protocol. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ApiErrorCode;
  /** Empty where the table's points to details and there are none: the sentence says it all. */
  readonly remedy: string;
  readonly details: readonly ApiErrorDetail[];
  /** Answer headers, such as `Retry-After`, which every 503 has. */
  readonly headers: Readonly<Record<string, string>>;

  /** @param sentence what exactly is wrong; the table's general sentence when absent */
  constructor(
    code: ApiErrorCode,
    sentence?: string,
    options: ErrorOptions & {
      details?: readonly ApiErrorDetail[];
      headers?: Readonly<Record<string, string>>;
      /** Where the table's remedy does not help. */
      remedy?: string;
    } = {},
  ) {
    super(sentence ?? table[code][1], options);
    this.code = code;
    this.details = options.details ?? [];
    const remedy = table[code][2];
    const pointsNowhere = this.details.length === 0 && remedy.includes('`details`');
    this.remedy = options.remedy ?? (pointsNowhere ? '' : remedy);
    this.headers = {
      ...(this.status === 503 && { 'Retry-After': String(retrySeconds) }),
      ...options.headers,
    };
  }

  /** The sentence and its remedy, for people. */
  get told(): string {
    return `${this.message} ${this.remedy}`.trimEnd();
  }

  /** HTTP status of the answer. */
  get status(): number {
    return table[this.code][0];
  }

  /** Body of the answer. */
  toBody(requestId: string): ApiErrorBody {
    return {
      code: this.status,
      message: this.told,
      error_code: this.code,
      request_id: requestId,
      ...(this.details.length > 0 && { details: [...this.details] }),
    };
  }
}

/** What people are told of any error. */
export function toldOf(thrown: unknown): string {
  if (thrown instanceof ApiError) return thrown.told;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Status, sentence and remedy of a code, for the documentation. */
export function describeApiError(code: ApiErrorCode): {
  status: number;
  message: string;
  remedy: string;
} {
  const [status, message, remedy] = table[code];
  return { status, message, remedy };
}
