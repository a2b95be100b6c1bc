import { wrap } from 'comlink';
import { installTransferHandlers, KinoraError } from '../contract';

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
    let worker: Worker | null = null;
    try {
      worker = start();
    } catch {}
    const crashed = worker ? crashOf(worker, name) : scriptFailure();
    crashed.catch(() => {}); // Without a pending call nothing else handles the rejection.
    // Without a worker no call is answered. Its methods return promises here and there; functions are proxied by the
    // transfer handlers.
    const api = wrap<Api>(worker ?? new MessageChannel().port1) as Api;
    return { worker, session: { api, crashed } };
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

/** The script of a worker could not be fetched, or was refused. */
async function scriptFailure(): Promise<never> {
  const page = await fetch(location.href, { method: 'HEAD', cache: 'no-store' }).catch(() => null);
  throw new KinoraError(page ? 'SCRIPT_REFUSED' : 'SERVER_UNREACHABLE');
}

function crashOf(worker: Worker, name: string): Promise<never> {
  return new Promise<never>((_, reject) => {
    worker.addEventListener('error', (event) => {
      // An event without a message tells of its script.
      if (!(event instanceof ErrorEvent)) return void scriptFailure().catch(reject);
      const detail = event.message ? `: ${event.message}` : '';
      reject(new KinoraError('INTERNAL', `The ${name} stopped unexpectedly${detail}.`));
    });
    worker.addEventListener('messageerror', () => {
      reject(new KinoraError('INTERNAL', `A message of the ${name} could not be read.`));
    });
  });
}
