import { type TransferHandler, transferHandlers } from 'comlink';
import { type ErrorRecord, KinoraError, toKinoraError } from './errors';

interface Thrown {
  readonly value: unknown;
}

interface SentError extends ErrorRecord {
  /** Where it was thrown, for whoever debugs it. */
  readonly stack?: string;
}

/**
 * Makes thrown errors cross the worker boundary as what they are.
 *
 * Comlink itself copies only name and message, so code and remedy would be lost. Worker and page both
 * call this once, before the first message; from then on every rejection on either side is a
 * {@link KinoraError} (unknown errors become `INTERNAL`). Calling it again changes nothing.
 */
export function installErrorTransfer(): void {
  const standard = transferHandlers.get('throw');
  if (!standard) throw new TypeError('Comlink has no "throw" transfer handler.');
  const handler: TransferHandler<Thrown, SentError> = {
    // Comlink marks what was thrown with a symbol that it keeps to itself; only its own test knows it.
    canHandle: (value): value is Thrown => standard.canHandle(value),
    serialize: ({ value }) => {
      const error = toKinoraError(value);
      const { stack } = value instanceof Error ? value : error;
      return [stack === undefined ? error.toRecord() : { ...error.toRecord(), stack }, []];
    },
    deserialize: ({ stack, ...record }) => {
      const error = KinoraError.fromRecord(record);
      if (stack !== undefined) error.stack = stack;
      throw error;
    },
  };
  transferHandlers.set('throw', handler);
}
