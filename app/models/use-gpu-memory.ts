import { useCallback, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../lib/contract';

/** What is known of the memory that the GPU gives. */
export type GpuMemory =
  | { readonly status: 'unknown' }
  | { readonly status: 'measuring' }
  /** `bytes` is never more than what was asked for. */
  | { readonly status: 'measured'; readonly bytes: number }
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The memory of the GPU, measured when asked. */
export function useGpuMemory(): { gpu: GpuMemory; measure: (most: number) => void } {
  const [gpu, setGpu] = useState<GpuMemory>({ status: 'unknown' });
  const measure = useCallback((most: number) => {
    setGpu({ status: 'measuring' });
    // Rarely wanted, and nothing that the page needs to show.
    import('./measure-gpu')
      .then(({ measureGpu }) => measureGpu(most))
      .then(
        (bytes) => setGpu({ status: 'measured', bytes }),
        (thrown: unknown) => setGpu({ status: 'failed', error: toKinoraError(thrown).toRecord() }),
      );
  }, []);
  return { gpu, measure };
}
