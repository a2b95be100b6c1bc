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
  let current: { worker: Worker | MessagePort; session: WorkerSession<Api> } | null = null;
  function open() {
    installTransferHandlers();
    const worker = endpointOf(start);
    const crashed = crashOf(worker, name);
    // Its methods return promises here and there; functions are proxied by the transfer handlers.
    return { worker, session: { api: wrap<Api>(worker) as Api, crashed } };
  }
  return {
    open() {
      current ??= open();
      return current.session;
    },
    close() {
      if (current?.worker instanceof Worker) current.worker.terminate();
      current = null;
    },
  };
}

/** The worker; where the browser throws and makes none, a port at which nobody answers, and which fails. */
function endpointOf(start: () => Worker): Worker | MessagePort {
  try {
    return start();
  } catch {
    const { port1 } = new MessageChannel();
    setTimeout(() => port1.dispatchEvent(new Event('error')));
    return port1;
  }
}

function crashOf(worker: Worker | MessagePort, name: string): Promise<never> {
  const crashed = new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      // An event without a message: the script of the worker could not be fetched, or was refused.
      if (!(event instanceof ErrorEvent)) {
        return void fetch(location.href, { method: 'HEAD', cache: 'no-store' }).then(
          () => reject(new KinoraError('SCRIPT_REFUSED')),
          () => reject(new KinoraError('SERVER_UNREACHABLE')),
        );
      }
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
