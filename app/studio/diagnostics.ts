import type { ErrorRecord } from '../../lib/contract/errors';
import type { GpuState } from './use-gpu';

/** What a bug report needs, as JSON: the browser, the GPU, the storage, the last error. No content. */
export async function collectDiagnostics(
  gpu: GpuState,
  lastError: ErrorRecord | null,
): Promise<string> {
  const { userAgent, hardwareConcurrency, language } = navigator;
  const { quota = null, usage = null } = await navigator.storage.estimate();
  const facts = {
    userAgent,
    language,
    hardwareConcurrency,
    crossOriginIsolated,
    jspi: 'Suspending' in WebAssembly,
    videoEncoder: 'VideoEncoder' in globalThis,
    storage: { quota, usage, persisted: await navigator.storage.persisted() },
    gpu,
    lastError,
  };
  return JSON.stringify(facts, null, 2);
}
