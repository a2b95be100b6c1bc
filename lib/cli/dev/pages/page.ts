import { type Remote, wrap } from 'comlink';
import { installTransferHandlers, toKinoraError } from '../../../contract';

/** Runs one call in a worker, which ends with it; what fails comes as its sentence. */
export async function inWorker<Api, T>(
  start: () => Worker,
  call: (api: Remote<Api>) => Promise<T>,
): Promise<T | string> {
  installTransferHandlers();
  const worker = start();
  try {
    const died = new Promise<never>((_, reject) => {
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
    return await Promise.race([call(wrap<Api>(worker)), died]);
  } catch (thrown) {
    return failureText(thrown);
  } finally {
    worker.terminate();
  }
}

/** The failure in the form for the driver. */
export function failureText(thrown: unknown): string {
  const error = toKinoraError(thrown);
  return `${error.code}: ${error.message} ${error.remedy}`;
}

/** Tells the driver that the page can be used. */
export function tellReady(): void {
  const main = document.querySelector('main');
  if (main) main.dataset.ready = 'true';
}
