import * as Comlink from 'comlink';
import { KinoraError } from '../contract';
import { appUrl } from '../contract/site';
import { installTransferHandlers } from '../contract/transfer-handlers';
import { createTestedBackend } from '../gpu';
import { assignKernels } from '../gpu/kernels/assign';
import { modelChecks } from '../models/checks';
import { type BenchmarkOptions, benchmarkModel, type StageResult } from '../pipeline/benchmark';
import { familyOf, fetchManifest } from '../pipeline/open';
import { checkerBenchmark } from '../safety/benchmark';

/** The benchmark in a browser: the worker of `npm run bench -- model --backend webgpu`. */
const bench = {
  /** Measures the layers of a listed model with random weights on the GPU. */
  async run(
    model: string,
    options: BenchmarkOptions,
    onResult: (result: StageResult) => void,
  ): Promise<StageResult[]> {
    const { family, configuration } = await open(model);
    const { backend } = await createTestedBackend({ matrices: options.kernels === 'matrix' });
    try {
      await assignKernels(backend, options.kernels);
      const stages = await family.benchmarkStages(configuration, options);
      const all = [...stages, checkerBenchmark(options)];
      return await benchmarkModel(backend, all, onResult);
    } finally {
      await backend.dispose();
    }
  },
};

async function open(id: string) {
  const { manifest, folder } = await fetchManifest(id, appUrl('/models/'));
  if (!folder) {
    const sentence = `The model "${manifest.name}" is listed without its configuration.`;
    throw new KinoraError('MODEL_FILE_MISSING', sentence);
  }
  return { family: familyOf(modelChecks, manifest), configuration: folder };
}

/** What the page sees of the worker. */
export type BenchApi = typeof bench;

/** Starts the benchmark in this worker; the page speaks to it over Comlink. */
export function startBenchmark(): void {
  installTransferHandlers();
  Comlink.expose(bench);
}
