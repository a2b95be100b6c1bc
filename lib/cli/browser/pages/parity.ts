import { proxy, wrap } from 'comlink';
import { installErrorTransfer } from '../../../contract/error-transfer';
import { toKinoraError } from '../../../contract/errors';
import type { ParityApi, ParityRequest } from '../../../engine/parity';
import type { ParityLine } from '../../../pipeline/parity';

declare global {
  interface Window {
    /** Runs the check; null when it went through, else the sentence that says why not. */
    kinoraParity?: (base: string, options: ParityRequest) => Promise<string | null>;
    /** Where the driver takes the lines. */
    kinoraParityLine?: (line: ParityLine) => unknown;
  }
}

window.kinoraParity = runParity;
const main = document.querySelector('main');
if (main) main.dataset.ready = 'true';

async function runParity(base: string, options: ParityRequest): Promise<string | null> {
  installErrorTransfer();
  const worker = new Worker(new URL('../../../../workers/parity.ts', import.meta.url), {
    type: 'module',
  });
  try {
    const onLine = proxy((line: ParityLine) => void window.kinoraParityLine?.(line));
    const died = new Promise<never>((_, reject) => {
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
    await Promise.race([wrap<ParityApi>(worker).run(base, options, onLine), died]);
    return null;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    return `${error.code}: ${error.message} ${error.remedy}`;
  } finally {
    worker.terminate();
  }
}
