import { proxy, type Remote, wrap } from 'comlink';
import { installErrorTransfer } from '../../../contract/error-transfer';
import { toKinoraError } from '../../../contract/errors';
import type { BenchApi } from '../../../engine/benchmark';
import type { BenchmarkOptions, StageResult } from '../../../pipeline/benchmark';

declare global {
  interface Window {
    /** Runs the benchmark of a listed model; its results, or the sentence that says why there are none. */
    kinoraBench?: (model: string, options: BenchmarkOptions) => Promise<StageResult[] | string>;
    /** Where the driver takes each result as it is known. */
    kinoraBenchResult?: (result: StageResult) => unknown;
  }
}

window.kinoraBench = runBench;
const main = document.querySelector('main');
if (main) main.dataset.ready = 'true';

function runBench(model: string, options: BenchmarkOptions): Promise<StageResult[] | string> {
  const onResult = proxy((result: StageResult) => void window.kinoraBenchResult?.(result));
  return inWorker((bench) => bench.run(model, options, onResult));
}

/** Runs one call in a worker of its own; what fails comes as its sentence. */
async function inWorker<T>(call: (bench: Remote<BenchApi>) => Promise<T>): Promise<T | string> {
  installErrorTransfer();
  const worker = new Worker(new URL('../../../../workers/bench.ts', import.meta.url), {
    type: 'module',
  });
  try {
    const died = new Promise<never>((_, reject) => {
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
    return await Promise.race([call(wrap<BenchApi>(worker)), died]);
  } catch (thrown) {
    const error = toKinoraError(thrown);
    return `${error.code}: ${error.message} ${error.remedy}`;
  } finally {
    worker.terminate();
  }
}
