import { proxy } from 'comlink';
import type { ParityApi, ParityDevice, ParityRequest } from '../../../engine/parity';
import type { ParityLine } from '../../../pipeline/parity';
import { inWorker, tellReady } from './in-worker';

declare global {
  interface Window {
    /** Runs the check; null when it went through, else the sentence that says why not. */
    kinoraParity?: (base: string, options: ParityRequest) => Promise<string | null>;
    /** Where the driver takes the lines. */
    kinoraParityLine?: (line: ParityLine) => unknown;
    /** Where it takes what they were computed on. */
    kinoraParityDevice?: (device: ParityDevice) => unknown;
  }
}

window.kinoraParity = runParity;
tellReady();

function runParity(base: string, options: ParityRequest): Promise<string | null> {
  const onLine = proxy((line: ParityLine) => void window.kinoraParityLine?.(line));
  const onDevice = proxy((device: ParityDevice) => void window.kinoraParityDevice?.(device));
  const start = () =>
    new Worker(new URL('../../../../workers/parity.ts', import.meta.url), { type: 'module' });
  return inWorker<ParityApi, null>(start, async (parity) => {
    await parity.run(base, options, onLine, onDevice);
    return null;
  });
}
