import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../config';

/** Fields that never reach a log, wherever they stand in an entry, down to the third level. */
const secretFields = [
  'authorization',
  'Authorization',
  'cookie',
  'Cookie',
  'set-cookie',
  'token',
  'lease_token',
  'leaseToken',
  'signInToken',
  'workerToken',
  'apiKey',
  'key',
  'secret',
  'password',
  'prompt',
  'negative_prompt',
  'image',
  'preview',
  'params',
] as const;

const paths = ['', '*.', '*.*.'].flatMap((above) =>
  secretFields.map((field) => (field.includes('-') ? bracketed(above, field) : above + field)),
);

function bracketed(above: string, field: string): string {
  return `${above.slice(0, -1)}["${field}"]`;
}

/** Causes below this are not told: a chain that long is a loop. */
const deepestCause = 4;

/** An error as the log tells it. */
export interface LoggedError {
  readonly type: string;
  readonly message: string;
  /** The calls alone: the first lines of a stack repeat the message. */
  readonly stack: string;
  readonly code?: string;
  readonly cause?: LoggedError;
}

/**
 * The log of a node: one JSON object a line on stdout, for machines. People are told on stderr.
 *
 * @param destination where the lines go instead; tests read them
 */
export function createLog(
  config: Pick<Config, 'KINORA_LOG'>,
  destination?: DestinationStream,
): Logger {
  const options = {
    level: config.KINORA_LOG,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths, censor: '[left out]' },
    serializers: { err: describeError, error: describeError },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * What may be told of an error. The database layer puts a query's parameters into message, stack and
 * fields of its errors, and those are prompts and keys: only the query's text is kept of them.
 */
export function describeError(thrown: unknown, depth = 0): LoggedError {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: '', stack: '' };
  const { code, query } = thrown as { code?: unknown; query?: unknown };
  return {
    type: thrown.name,
    message: typeof query === 'string' ? `Failed query: ${query}` : thrown.message,
    stack: (thrown.stack ?? '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    ...(typeof code === 'string' && { code }),
    ...(thrown.cause instanceof Error &&
      depth < deepestCause && { cause: describeError(thrown.cause, depth + 1) }),
  };
}
