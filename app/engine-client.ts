import { createEngineHost } from '../lib/predictions/engine-host';
import type { EngineHost } from '../lib/predictions/run-engine';

/** The engine worker of this page. */
export function createPageEngine(): EngineHost {
  return createEngineHost(
    () => new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' }),
  );
}
