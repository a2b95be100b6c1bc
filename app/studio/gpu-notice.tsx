import { useState } from 'react';
import { type ErrorCode, type ErrorRecord, KinoraError } from '../../lib/contract/errors';
import type { Backend } from '../../lib/contract/prediction';
import { collectDiagnostics } from './diagnostics';
import { Problem } from './problem';
import type { GpuState } from './use-gpu';

/** Outcomes that the CPU backend is a way around. */
const cpuRemedies: readonly ErrorCode[] = ['WEBGPU_MISSING', 'ADAPTER_MISSING', 'ADAPTER_SOFTWARE'];

/**
 * What the page has to say about the GPU: nothing where all is well or the CPU was chosen, else the
 * outcome with its remedy.
 */
export function GpuNotice(props: {
  gpu: GpuState;
  backend: Backend;
  /** The error of the newest prediction, where that one failed. */
  lastError: ErrorRecord | null;
  onCheck: () => void;
  onUseCpu: () => void;
}) {
  const { gpu, backend, lastError, onCheck, onUseCpu } = props;
  const [copied, setCopied] = useState(false);
  const error = problemOf(gpu, backend, lastError);
  if (!error) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(await collectDiagnostics(gpu, lastError));
    setCopied(true);
  };
  const cpuHelps = cpuRemedies.includes(error.code);
  return (
    <aside className="gpu-notice" aria-label="GPU check">
      <Problem error={error}>
        {cpuHelps && (
          <button type="button" onClick={onUseCpu}>
            Use the CPU instead
          </button>
        )}
        <button type="button" onClick={onCheck}>
          Check again
        </button>
        <button type="button" onClick={() => void copy().catch(() => setCopied(false))}>
          {copied ? 'Diagnostics copied' : 'Copy diagnostics'}
        </button>
      </Problem>
    </aside>
  );
}

function problemOf(
  gpu: GpuState,
  backend: Backend,
  lastError: ErrorRecord | null,
): ErrorRecord | null {
  if (gpu.status === 'failed') return gpu.error;
  if (gpu.status === 'checking' || backend === 'wasm') return null;
  if (gpu.report.outcome === 'no-webgpu') return new KinoraError('WEBGPU_MISSING').toRecord();
  if (gpu.report.outcome === 'no-adapter') return new KinoraError('ADAPTER_MISSING').toRecord();
  if (lastError?.code === 'DEVICE_LOST') return lastError;
  if (gpu.report.software) return new KinoraError('ADAPTER_SOFTWARE').toRecord();
  return null;
}
