import { z } from 'zod';

/**
 * Every error of the API, with its HTTP status, one sentence and a remedy. Server, documentation and
 * tests take their texts from this table only.
 */
const table = {
  INVALID_JSON: [400, 'The body is not JSON.', 'Send one JSON object as the body.'],
  INVALID_PARAMETER: [400, 'A parameter is missing or out of its range.', 'See `details`.'],
  PROMPT_REFUSED: [
    400,
    'The prompt names a child in a sexual context; Kinora never makes such a video.',
    'Change the prompt.',
  ],
  INVALID_WEBHOOK: [
    400,
    'The webhook is not a public https URL.',
    'Give an https URL that can be reached from the internet.',
  ],
  INVALID_IMAGE: [
    400,
    'The image cannot be used.',
    'Use a JPEG, PNG, WebP, AVIF, GIF or BMP image of at most 20 MB and 40 megapixels.',
  ],
  UNAUTHORIZED: [
    401,
    'The API key is missing or not valid.',
    'Send the header `Authorization: Bearer <API_KEY>`.',
  ],
  FORBIDDEN: [403, 'This key may not do that.', 'Use a key with the scope that `details` names.'],
  TERMS_NOT_ACCEPTED: [
    403,
    'A key is made only for someone who has accepted the terms of use.',
    'Read them at `/terms`, and send their version as `accept_terms`.',
  ],
  NOT_FOUND: [404, 'There is nothing here.', 'Compare the path and the id with the documentation.'],
  METHOD_NOT_ALLOWED: [405, 'This method is not for this path.', 'See the header `Allow`.'],
  CONFLICT: [409, 'This is not possible in the present state.', 'Read the state and decide again.'],
  NOTHING_TO_SHARE: [
    409,
    'This prediction has no video to share.',
    'Wait until it is completed; a video that has expired cannot be shared.',
  ],
  SHARE_ENDED: [
    410,
    'This link has expired or was revoked.',
    'Ask the person who sent it for a new one.',
  ],
  LEASE_LOST: [
    409,
    'This worker no longer has the lease.',
    'Stop working on this job; it has ended, or another worker has it.',
  ],
  OUTPUT_REJECTED: [
    422,
    'The uploaded file is not the requested video.',
    'Upload the whole file again, or fail the job.',
  ],
  IDEMPOTENCY_MISMATCH: [
    422,
    'This idempotency key was used with another body.',
    'Use a new key for a new request.',
  ],
  REQUEST_TIMEOUT: [
    408,
    'The request did not arrive in time.',
    'Send it again, its body without long pauses.',
  ],
  PRECONDITION_FAILED: [
    412,
    'The file is not the one that If-Match names.',
    'Read it without If-Match; its ETag is the present one.',
  ],
  TOO_LARGE: [413, 'The body is too large.', 'Stay below the limit that the message names.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'This content type is not accepted.', 'Send application/json.'],
  EXPECTATION_FAILED: [
    417,
    'The header Expect names something that this server does not know.',
    'Send `Expect: 100-continue`, or no such header.',
  ],
  RATE_LIMITED: [429, 'Too many requests.', 'Wait for the seconds that `Retry-After` names.'],
  TOO_MANY_JOBS: [
    429,
    'This key has reached its limit of unfinished predictions.',
    'Wait until one has ended, or cancel one.',
  ],
  HEADERS_TOO_LARGE: [431, 'The headers are too large.', 'Send at most 16 kB of them.'],
  INTERNAL: [
    500,
    'Something went wrong inside Kinora.',
    'Try again; if the error persists, report it.',
  ],
  METHOD_UNKNOWN: [
    501,
    'This server does not know the method.',
    'Use GET, POST, PUT or DELETE, in capital letters.',
  ],
  FORMAT_UNKNOWN: [501, 'This format is not available.', 'Ask with `format=json`.'],
  STORAGE_DOWN: [
    503,
    'The storage does not respond.',
    'Try again in a few seconds, with the same Idempotency-Key.',
  ],
  SHUTTING_DOWN: [503, 'The server is being stopped.', 'Try again in a few seconds.'],
} as const satisfies Record<string, readonly [status: number, message: string, remedy: string]>;

/** `Retry-After` of a 503 in seconds: longer than a restart of a database or a node takes. */
const retrySeconds = 5;

/** Stable identifier of an error, `error_code` on the wire. */
export type ApiErrorCode = keyof typeof table;
/** The codes of all errors of the API. */
export const apiErrorCodes = Object.keys(table) as ApiErrorCode[];

/** One wrong field. */
export interface ApiErrorDetail {
  /** Dotted path, such as `loras.0.scale`. */
  readonly field: string;
  /** What is allowed: "a whole number from 1 to …". */
  readonly message: string;
}

/** Body of every error response. */
export const apiErrorSchema = z.object({
  code: z.int().describe('The HTTP status.'),
  message: z.string().describe('One sentence, and a remedy if there is one.'),
  error_code: z
    .enum(apiErrorCodes as [ApiErrorCode, ...ApiErrorCode[]])
    .describe('Stable; let programs decide by it and not by the message.'),
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
  /** Empty if the table's remedy refers to `details` and there are none. */
  readonly remedy: string;
  readonly details: readonly ApiErrorDetail[];
  /** Response headers, such as `Retry-After`, which every 503 has. */
  readonly headers: Readonly<Record<string, string>>;

  /** @param sentence what exactly is wrong; by default the table's general sentence */
  constructor(
    code: ApiErrorCode,
    sentence?: string,
    options: ErrorOptions & {
      details?: readonly ApiErrorDetail[];
      headers?: Readonly<Record<string, string>>;
      /** Replaces the table's remedy. */
      remedy?: string;
    } = {},
  ) {
    super(sentence ?? table[code][1], options);
    this.code = code;
    this.details = options.details ?? [];
    const remedy = table[code][2];
    const lacksDetails = this.details.length === 0 && remedy.includes('`details`');
    this.remedy = options.remedy ?? (lacksDetails ? '' : remedy);
    this.headers = {
      ...(this.status === 503 && { 'Retry-After': String(retrySeconds) }),
      ...options.headers,
    };
  }

  /** The sentence and its remedy. */
  get fullMessage(): string {
    return `${this.message} ${this.remedy}`.trimEnd();
  }

  /** HTTP status of the response. */
  get status(): number {
    return table[this.code][0];
  }

  /** Body of the response. */
  toBody(requestId: string): ApiErrorBody {
    return {
      code: this.status,
      message: this.fullMessage,
      error_code: this.code,
      request_id: requestId,
      ...(this.details.length > 0 && { details: [...this.details] }),
    };
  }
}

/** The text of any error that people may read. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof ApiError) return thrown.fullMessage;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Status, sentence and remedy of a code, for the documentation. */
export function describeApiError(code: ApiErrorCode) {
  const [status, message, remedy] = table[code];
  return { status, message, remedy };
}
