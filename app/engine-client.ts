import type { EngineClient } from '../lib/predictions/engine-client';
import { createEngineClient } from '../lib/predictions/engine-client';

/** The engine worker of this page. */
export function createPageEngine(): EngineClient {
  return createEngineClient(
    () => new Worker(new URL('../workers/engine.ts', import.meta.url), { type: 'module' }),
  );
}
