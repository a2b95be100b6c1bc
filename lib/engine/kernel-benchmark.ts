import * as Comlink from 'comlink';
import { installTransferHandlers } from '../contract/transfer-handlers';
import { createTestedBackend } from '../gpu';
import {
  benchmarkKernels,
  type KernelBenchOptions,
  type KernelReport,
} from '../models/wan22/benchmark/kernels';
import { httpFolder } from '../weights';

/** The worker of `npm run bench -- kernels`, of its exported page, and of the report in the settings. */
const bench = {
  /** @param base address of the model's configuration, with a trailing slash */
  async run(
    base: string,
    options: KernelBenchOptions,
    onReport: (report: KernelReport) => void,
  ): Promise<void> {
    const { backend } = await createTestedBackend({ matrices: true });
    try {
      await benchmarkKernels(backend, httpFolder(new URL(base)), options, onReport);
    } finally {
      await backend.dispose();
    }
  },
};

/** What the page sees of the worker. */
export type KernelBenchApi = typeof bench;

/** Starts the benchmark of the kernels in this worker; the page speaks to it over Comlink. */
export function startKernelBenchmark(): void {
  installTransferHandlers();
  Comlink.expose(bench);
}
