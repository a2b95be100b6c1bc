import type { EngineApi } from '../lib/contract';
import { createWorkerClient } from '../lib/predictions/worker-client';

/** The engine worker of this page, which starts on first use. The page asks it about the GPU before the runner is loaded. */
export const engine = createWorkerClient<EngineApi>(
  'engine',
  () => new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' }),
);
