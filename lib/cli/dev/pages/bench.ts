import { proxy } from 'comlink';
import type { BenchApi } from '../../../engine/benchmark';
import type { BenchmarkOptions, StageResult } from '../../../pipeline/benchmark';
import { inWorker, tellReady } from './in-worker';

declare global {
  interface Window {
    /** Runs the benchmark of a listed model; its results, or the sentence that says why there are none. */
    kinoraBench?: (model: string, options: BenchmarkOptions) => Promise<StageResult[] | string>;
    /** Where the driver takes each result as it is known. */
    kinoraBenchResult?: (result: StageResult) => unknown;
  }
}

window.kinoraBench = runBench;
tellReady();

function runBench(model: string, options: BenchmarkOptions): Promise<StageResult[] | string> {
  const onResult = proxy((result: StageResult) => void window.kinoraBenchResult?.(result));
  const start = () =>
    new Worker(new URL('../../../../workers/bench.ts', import.meta.url), { type: 'module' });
  return inWorker<BenchApi, StageResult[]>(start, (bench) => bench.run(model, options, onResult));
}
