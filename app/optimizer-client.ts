import type { OptimizerApi } from '../lib/contract';
import { createWorkerClient, type WorkerClient } from '../lib/predictions/worker-client';

/** A client for the worker that improves prompts, which starts on first use. */
export function createOptimizerClient(): WorkerClient<OptimizerApi> {
  const start = () =>
    new Worker(new URL('../workers/optimizer.ts', import.meta.url), { type: 'module' });
  return createWorkerClient<OptimizerApi>('optimizer', start);
}
