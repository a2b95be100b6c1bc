import { type Remote, wrap } from 'comlink';
import { installErrorTransfer } from '../contract/error-transfer';
import { KinoraError } from '../contract/errors';

/** A worker that runs. */
export interface WorkerSession<Api> {
  readonly api: Api;
  /** Rejects when the worker dies or cannot be understood; never resolves. */
  readonly crashed: Promise<never>;
}

/**
 * One worker of this page or worker: started on first use, started afresh after it was closed.
 *
 * @param name for messages
 * @param start makes the worker; the bundler wants to see its address there
 * @param overComlink the plain interface, in which callbacks become proxies
 */
export function createWorkerHost<Api>(
  name: string,
  start: () => Worker,
  overComlink: (remote: Remote<Api>) => Api,
): { open(): WorkerSession<Api>; close(): void } {
  let current: { worker: Worker; session: WorkerSession<Api> } | null = null;
  function open() {
    installErrorTransfer();
    const worker = start();
    const crashed = crashOf(worker, name);
    return { worker, session: { api: overComlink(wrap<Api>(worker)), crashed } };
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
    worker.addEventListener('error', ({ message }) => {
      const detail = message ? `: ${message}` : '';
      reject(new KinoraError('INTERNAL', `The ${name} stopped unexpectedly${detail}.`));
    });
    worker.addEventListener('messageerror', () => {
      reject(new KinoraError('INTERNAL', `A message of the ${name} could not be read.`));
    });
  });
  crashed.catch(() => {}); // it may die while nobody waits for it
  return crashed;
}
