import { type Remote, wrap } from 'comlink';
import { installErrorTransfer } from '../contract/error-transfer';
import { KinoraError } from '../contract/errors';

/** A running worker. */
export interface WorkerSession<Api> {
  readonly api: Api;
  /** Rejects when the worker crashes or a message cannot be deserialised; never resolves. */
  readonly crashed: Promise<never>;
}

/** Starts and ends one worker. */
export interface WorkerClient<Api> {
  /** The running worker; starts one if there is none. */
  open(): WorkerSession<Api>;
  /** Terminates the worker; the next {@link open} starts a new one. */
  close(): void;
}

/**
 * A client for one worker that is called through Comlink.
 *
 * @param name for messages
 * @param start creates the worker: the bundler needs the literal `new Worker(new URL(…))` at the caller
 * @param toApi wraps the remote object, and turns callbacks into Comlink proxies
 */
export function createWorkerClient<Api>(
  name: string,
  start: () => Worker,
  toApi: (remote: Remote<Api>) => Api,
): WorkerClient<Api> {
  let current: { worker: Worker; session: WorkerSession<Api> } | null = null;
  function open() {
    installErrorTransfer();
    const worker = start();
    const crashed = crashOf(worker, name);
    return { worker, session: { api: toApi(wrap<Api>(worker)), crashed } };
  }
  return {
    open() {
      current ??= open();
      return current.session;
    },
    close() {
      current?.worker.terminate();
      current = null;
    },
  };
}

function crashOf(worker: Worker, name: string): Promise<never> {
  const crashed = new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      // An event without a message: the script of the worker could not be fetched.
      if (!(event instanceof ErrorEvent)) return reject(new KinoraError('SERVER_UNREACHABLE'));
      const detail = event.message ? `: ${event.message}` : '';
      reject(new KinoraError('INTERNAL', `The ${name} stopped unexpectedly${detail}.`));
    });
    worker.addEventListener('messageerror', () => {
      reject(new KinoraError('INTERNAL', `A message of the ${name} could not be read.`));
    });
  });
  crashed.catch(() => {}); // Without a pending call nothing else handles the rejection.
  return crashed;
}
