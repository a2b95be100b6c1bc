import * as Comlink from 'comlink';
import type { DeviceReport, EngineCounters, KernelSetting } from '../contract';
import { installTransferHandlers } from '../contract/transfer-handlers';
import { finishingParity } from '../finishing/parity';
import { createTestedBackend, probeDevice } from '../gpu';
import { assignKernels } from '../gpu/kernels/assign';
import { modelChecks } from '../models/checks';
import { type ParityLine, type ParityOptions, runParity } from '../pipeline/parity';
import { classifierParity } from '../safety/parity';
import { httpFolder } from '../weights';

/** All that `npm run parity` compares, by the name of its kind. */
export const parityFamilies = {
  ...modelChecks,
  classifier: classifierParity,
  finishing: finishingParity,
};

/** What the worker is asked for. */
export interface ParityRequest extends ParityOptions {
  readonly kernels: KernelSetting;
}

/** What a check ran on; `ran` are the keys of kernels. */
export type ParityDevice = Pick<DeviceReport, 'adapter' | 'software' | 'features'> &
  Pick<EngineCounters, 'peakBytes' | 'waits'> & { readonly ran: readonly string[] };

/** The parity check in a browser: the worker of `npm run parity -- DIR --backend webgpu`. */
const parity = {
  /**
   * Runs every stage that the folder has a golden for.
   *
   * @param base address of a folder laid out like the goldens, with a trailing slash
   */
  async run(
    base: string,
    { kernels, ...options }: ParityRequest,
    onLine: (line: ParityLine) => void,
    onDevice: (device: ParityDevice) => void,
  ): Promise<void> {
    const { backend } = await createTestedBackend({ matrices: kernels === 'matrix' });
    try {
      const mode = await assignKernels(backend, kernels);
      const folder = httpFolder(new URL(base));
      const named = (line: ParityLine) => {
        const notes = [...(line.note ? [line.note] : []), `with ${mode} kernels`];
        onLine({ ...line, note: notes.join(', ') });
      };
      await runParity(parityFamilies, folder, backend, {
        ...options,
        onLine: mode === kernels ? onLine : named,
      });
      const { adapter, software, features } = await probeDevice();
      const { peakBytes, waits } = backend.counters();
      const ran = [...(backend.compute?.used ?? [])].sort();
      onDevice({ adapter, software, features, ran, peakBytes, waits });
    } finally {
      await backend.dispose();
    }
  },
};

/** What the page sees of the worker. */
export type ParityApi = typeof parity;

/** Starts the parity check in this worker; the page speaks to it over Comlink. */
export function startParity(): void {
  installTransferHandlers();
  Comlink.expose(parity);
}
