import { DrizzleQueryError } from 'drizzle-orm';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../config';

/** Fields that are left out of every log entry, down to its third level. */
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
  'last_image',
  'preview',
  'params',
] as const;

const paths = ['', '*.', '*.*.'].flatMap((above) =>
  secretFields.map((field) =>
    field.includes('-') ? `${above.slice(0, -1)}["${field}"]` : above + field,
  ),
);

/** Deeper causes are not logged: a chain that long is a loop. */
const deepestCause = 4;

/**
 * The log of a node: one JSON object per line on stdout. Lines for people go to stderr.
 *
 * @param destination where the lines go instead, for tests
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
 * The fields of an error that may be logged. Drizzle puts a query's parameters, prompts and keys among them,
 * into message, stack and fields of its errors: only the query's text is logged, and the database's message.
 */
function describeError(thrown: unknown, depth = 0): object {
  if (!(thrown instanceof Error)) return { type: typeof thrown, message: '', stack: '' };
  const { code } = thrown as { code?: unknown };
  const isQuery = thrown instanceof DrizzleQueryError;
  return {
    type: thrown.name,
    message: isQuery ? `Failed query: ${thrown.query}` : thrown.message,
    // Only the calls: the first lines of a stack repeat the message, whose values may look like calls.
    stack: (thrown.stack ?? '')
      .replace(thrown.message, '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .join('\n'),
    ...(typeof code === 'string' && { code }),
    ...(thrown.cause instanceof Error &&
      depth < deepestCause && { cause: describeError(thrown.cause, depth + 1) }),
  };
}
