import type { DeviceReport, EngineCounters, KernelSetting } from '../../../contract';
import { createTestedBackend, probeDevice } from '../../../gpu';
import { assignKernels } from '../../../gpu/kernels/assign';
import { type ParityLine, type ParityOptions, runParity } from '../../../parity';
import { httpFolder } from '../../../weights';
import { failureText, tellReady } from './page';

/** Options that can be sent to the page. */
type ParityRequest = Pick<ParityOptions, 'tolerance' | 'loraFiles'> & {
  readonly kernels: KernelSetting;
};

/** The device and kernels of a check; `ran` are the keys of kernels. */
export type ParityDevice = Pick<DeviceReport, 'adapter' | 'software' | 'features'> &
  Pick<EngineCounters, 'peakBytes' | 'waits'> & { readonly ran: readonly string[] };

declare global {
  interface Window {
    /** Runs the check on the folder of an address; what it ran on, or the sentence that says why it did not. */
    kinoraParity?: (base: string, request: ParityRequest) => Promise<ParityDevice | string>;
    /** Where the driver takes the lines. */
    kinoraParityLine?: (line: ParityLine) => unknown;
  }
}

window.kinoraParity = async (base, { kernels, ...options }) => {
  try {
    const { backend } = await createTestedBackend({ matrices: kernels === 'matrix' });
    const mode = await assignKernels(backend, kernels);
    await runParity(httpFolder(new URL(base)), backend, {
      ...options,
      quickChecker: httpFolder(new URL('nsfwjs/', location.href)),
      onLine(line) {
        const notes = line.note ? [line.note] : [];
        if (mode !== kernels) notes.push(`with ${mode} kernels`);
        void window.kinoraParityLine?.(
          notes.length > 0 ? { ...line, note: notes.join(', ') } : line,
        );
      },
    });
    const { adapter, software, features } = await probeDevice();
    const { peakBytes, waits } = backend.counters();
    const ran = [...(backend.compute?.used ?? [])].sort();
    return { adapter, software, features, ran, peakBytes, waits };
  } catch (thrown) {
    return failureText(thrown);
  }
};
tellReady();
