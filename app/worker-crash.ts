import { KinoraError } from '../lib/contract/errors';

/** Rejects when the worker dies or cannot be understood; never resolves. */
export function crashOf(worker: Worker, name: string): Promise<never> {
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
