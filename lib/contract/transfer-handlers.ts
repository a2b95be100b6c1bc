import { expose, type TransferHandler, transferHandlers } from 'comlink';
import { type ErrorRecord, KinoraError, toKinoraError } from './errors';

interface Thrown {
  readonly value: unknown;
}

interface SentError extends ErrorRecord {
  /** Stack of the other side, for debugging. */
  readonly stack?: string;
}

/**
 * Transfers thrown errors through Comlink with their code and remedy, and functions that are arguments as proxies.
 *
 * Comlink copies only name and message of an error, and no function. Page and worker both call this before the first
 * message; from then on every rejection is a {@link KinoraError} (unknown errors become `INTERNAL`). Repeated calls
 * have no effect.
 */
export function installTransferHandlers(): void {
  const standard = transferHandlers.get('throw');
  const proxied = transferHandlers.get('proxy');
  if (!standard || !proxied) throw new TypeError('Comlink lacks a transfer handler.');
  const handler: TransferHandler<Thrown, SentError> = {
    // Comlink marks thrown values with a private symbol, which only its own handler can detect.
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
  transferHandlers.set('function', {
    ...proxied,
    canHandle: (value): value is () => void => typeof value === 'function',
  });
}

/** Answers calls of this worker over Comlink; its errors arrive as {@link installTransferHandlers} says. */
export function exposeWorker(api: object): void {
  installTransferHandlers();
  expose(api);
}
