import { wrap } from 'comlink';
import { KinoraError } from '../contract/errors';
import { installTransferHandlers } from '../contract/transfer-handlers';

/** A running worker. */
export interface WorkerSession<Api> {
  readonly api: Api;
  /** Rejects when the worker does not start or crashes, or a message cannot be deserialised; never resolves. */
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
 */
export function createWorkerClient<Api>(name: string, start: () => Worker): WorkerClient<Api> {
  let current: { worker: Worker | null; session: WorkerSession<Api> } | null = null;
  function open() {
    installTransferHandlers();
    const { worker, crashed } = tryStart(name, start);
    // Where no worker started, its calls wait for nobody, and `crashed` ends them.
    const endpoint = worker ?? new MessageChannel().port1;
    // Its methods return promises here and there; functions are proxied by the transfer handlers.
    return { worker, session: { api: wrap<Api>(endpoint) as Api, crashed } };
  }
  return {
    open() {
      current ??= open();
      return current.session;
    },
    close() {
      current?.worker?.terminate();
      current = null;
    },
  };
}

function tryStart(name: string, start: () => Worker) {
  try {
    const worker = start();
    return { worker, crashed: crashOf(worker, name) };
  } catch (cause) {
    // A SecurityError: the page may start no worker, or not from this address.
    const crashed = Promise.reject(new KinoraError('SCRIPT_REFUSED', undefined, { cause }));
    crashed.catch(() => {}); // A call that waits reports it.
    return { worker: null, crashed };
  }
}

/** Why the script of a worker did not arrive, which the browser does not tell: the server answers, or it does not. */
function whyNoScript(): Promise<KinoraError> {
  const asked = fetch(location.href, { method: 'HEAD', cache: 'no-store' });
  return asked.then(
    () => new KinoraError('SCRIPT_REFUSED'),
    () => new KinoraError('SERVER_UNREACHABLE'),
  );
}

function crashOf(worker: Worker, name: string): Promise<never> {
  const crashed = new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      // An event without a message: the script of the worker could not be fetched, or was refused.
      if (!(event instanceof ErrorEvent)) return void whyNoScript().then(reject);
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
