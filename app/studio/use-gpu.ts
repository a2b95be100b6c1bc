import { useCallback, useEffect, useState } from 'react';
import type { DeviceReport } from '../../lib/contract/engine';
import { type ErrorRecord, toKinoraError } from '../../lib/contract/errors';
import { getRunner } from '../runner';

export type GpuState =
  | { readonly status: 'checking' }
  | { readonly status: 'known'; readonly report: DeviceReport }
  /** The engine itself could not be asked. */
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** What the engine says about the GPU, and a way to ask again. */
export function useGpu(): { gpu: GpuState; check: () => void } {
  const [gpu, setGpu] = useState<GpuState>({ status: 'checking' });
  const check = useCallback(() => {
    setGpu({ status: 'checking' });
    probe().then(
      (report) => setGpu({ status: 'known', report }),
      (thrown: unknown) => setGpu({ status: 'failed', error: toKinoraError(thrown).toRecord() }),
    );
  }, []);
  useEffect(check, [check]);
  return { gpu, check };
}

async function probe(): Promise<DeviceReport> {
  const { engine } = getRunner();
  const { api, crashed } = engine.open();
  try {
    return await Promise.race([api.probe(), crashed]);
  } catch (thrown) {
    engine.close();
    throw thrown;
  }
}
