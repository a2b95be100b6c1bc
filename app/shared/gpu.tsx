import { type ReactNode, useCallback, useEffect, useState } from 'react';
import {
  type Backend,
  type DeviceReport,
  type ErrorCode,
  type ErrorRecord,
  KinoraError,
  toKinoraError,
  usualBackend,
} from '../../lib/contract';
import { engine } from '../engine';
import { errorTexts, t } from '../texts';
import { Button } from './button';
import { type DeviceSetting, getDevice } from './device';
import { HelpLink } from './messages';

export type GpuState =
  | { readonly status: 'checking' }
  | { readonly status: 'known'; readonly report: DeviceReport }
  /** The engine worker failed. */
  | { readonly status: 'failed'; readonly error: ErrorRecord };

/** The latest report that was asked for in this tab. */
let latest: Promise<DeviceReport> | null = null;

/** The engine's report on the GPU, and a function that requests a new one. */
export function useGpu(): { gpu: GpuState; check: () => void } {
  const [gpu, setGpu] = useState<GpuState>({ status: 'checking' });
  const check = useCallback(() => {
    setGpu({ status: 'checking' });
    latest = probe();
    latest.then(
      (report) => setGpu({ status: 'known', report }),
      (thrown: unknown) => setGpu({ status: 'failed', error: toKinoraError(thrown).toRecord() }),
    );
  }, []);
  useEffect(check, [check]);
  return { gpu, check };
}

/** What computes: what was chosen, else what is usual on this GPU. WebGPU as long as that is not known. */
export function shownBackend({ backend }: DeviceSetting, gpu: GpuState): Backend {
  return backend ?? (gpu.status === 'known' ? usualOn(gpu.report) : 'webgpu');
}

/** The same for a run that begins now: waits until the GPU is known. */
export async function backendOfRun(): Promise<Backend> {
  const { backend } = getDevice();
  if (backend) return backend;
  latest ??= probe();
  // The run itself reports what is wrong with the engine.
  return latest.then(usualOn, () => 'webgpu' as const);
}

function usualOn({ outcome, software }: DeviceReport): Backend {
  return usualBackend(outcome !== 'ready' || software);
}

async function probe(): Promise<DeviceReport> {
  const { api, crashed } = engine.open();
  try {
    return await Promise.race([api.probe(), crashed]);
  } catch (thrown) {
    engine.close();
    throw thrown;
  }
}

/** The id of the note that the badge opens. */
const noteId = 'gpu-note';

/** Whether the note on a problem opens from the badge: an emulated GPU works, and the CPU computes instead. */
export function isEmulated(problem: ErrorRecord | null): problem is ErrorRecord {
  return problem?.code === 'ADAPTER_SOFTWARE';
}

/** The device that will compute the video, in the header. */
export function GpuBadge(props: {
  gpu: GpuState;
  backend: Backend;
  /** Of the GPU. */
  problem: ErrorRecord | null;
  /** What can be done about it. */
  children: ReactNode;
}) {
  const { gpu, backend, problem, children } = props;
  const { state, text } = describe(gpu, backend);
  if (isEmulated(problem)) {
    return (
      <>
        <Button className="badge row min-0 muted text-m" data-state={state} popoverTarget={noteId}>
          <span>{text}</span>
        </Button>
        <GpuNotice error={problem} backend={backend}>
          {children}
        </GpuNotice>
      </>
    );
  }
  return (
    <p className="badge row min-0 muted text-m" data-state={state} title={text} role="status">
      <span>{text}</span>
    </p>
  );
}

/** `nvidia ampere`, as far as the browser tells; empty where it tells nothing. */
export function adapterName({ adapter }: DeviceReport): string {
  return [adapter.vendor, adapter.architecture].filter(Boolean).join(' ');
}

/** Whether the CPU has one thread here: without isolation the page has no memory for more. */
const isOneThread = () => isSecureContext && !crossOriginIsolated;

function describe(gpu: GpuState, backend: Backend): { state: string; text: string } {
  if (backend === 'wasm') {
    return { state: 'slow', text: isOneThread() ? t('shared.oneCpu') : 'CPU' };
  }
  if (gpu.status === 'checking') return { state: 'checking', text: t('shared.gpuChecking') };
  if (gpu.status === 'failed') return { state: 'bad', text: t('shared.engineFailed') };
  const { outcome, software } = gpu.report;
  if (outcome === 'no-webgpu') return { state: 'bad', text: t('shared.noWebgpu') };
  if (outcome === 'no-adapter') return { state: 'bad', text: t('shared.noGpu') };
  if (software) return { state: 'slow', text: t('shared.softwareGpu') };
  const name = adapterName(gpu.report);
  return { state: 'good', text: name ? t('shared.gpuName', { name }) : t('shared.gpuReady') };
}

/** Errors that the CPU backend avoids. */
const avoidedByCpu: readonly ErrorCode[] = [
  'WEBGPU_MISSING',
  'ADAPTER_MISSING',
  'ADAPTER_SOFTWARE',
];

/** What a person can do about a problem of the GPU. */
export function GpuActions(props: {
  gpu: GpuState;
  backend: Backend;
  error: ErrorRecord;
  /** Whether the CPU is offered where the GPU was lost. */
  cpu?: boolean;
  onCheck: () => void;
  onUseCpu: () => void;
}) {
  const { gpu, backend, error, cpu = false, onCheck, onUseCpu } = props;
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(await collectDiagnostics(gpu, error));
    setCopied(true);
  };
  return (
    <>
      {((backend === 'webgpu' && avoidedByCpu.includes(error.code)) ||
        (cpu && error.code === 'DEVICE_LOST')) && (
        <Button onClick={onUseCpu}>{t('shared.useCpu')}</Button>
      )}
      <Button onClick={onCheck}>{t('shared.checkAgain')}</Button>
      {/* Where the clipboard is closed to the page, the button does not say that it was copied. */}
      <Button onClick={() => void copy().catch(() => setCopied(false))}>
        {copied ? t('shared.diagnosticsCopied') : t('shared.copyDiagnostics')}
      </Button>
    </>
  );
}

/** A problem of the GPU with its remedy and the actions on it; closed until it is asked for where it is emulated. */
export function GpuNotice(props: { error: ErrorRecord; backend: Backend; children: ReactNode }) {
  const { error, backend, children } = props;
  const { message, remedy, detail } = errorTexts(error);
  const onCpu = backend === 'wasm';
  const emulated = isEmulated(error);
  return (
    <aside
      id={noteId}
      popover={emulated ? 'auto' : undefined}
      className="gpu-notice problem"
      aria-label={t('shared.gpuCheck')}
      data-code={error.code}
    >
      <p>
        <strong>{onCpu && emulated ? t('shared.emulatedSoCpu') : message}</strong>
      </p>
      {detail && <p lang="en">{detail}</p>}
      <p>
        {remedy} <HelpLink to={error.code} />
      </p>
      {onCpu && !emulated && <p>{t('shared.cpuComputes')}</p>}
      {onCpu && isOneThread() && <p>{t('shared.oneThread')}</p>}
      <div className="actions">{children}</div>
    </aside>
  );
}

/**
 * The problem of the GPU; null if there is none, or if the CPU was chosen.
 *
 * @param chosen null where nothing was
 * @param lastError of the newest prediction, if that one failed
 */
export function gpuProblem(
  gpu: GpuState,
  chosen: Backend | null,
  lastError: ErrorRecord | null,
): ErrorRecord | null {
  if (gpu.status === 'failed') return gpu.error;
  if (gpu.status === 'checking' || chosen === 'wasm') return null;
  if (gpu.report.outcome === 'no-webgpu') return new KinoraError('WEBGPU_MISSING').toRecord();
  if (gpu.report.outcome === 'no-adapter') return new KinoraError('ADAPTER_MISSING').toRecord();
  if (lastError?.code === 'DEVICE_LOST') return lastError;
  if (gpu.report.software) return new KinoraError('ADAPTER_SOFTWARE').toRecord();
  return null;
}

/**
 * Facts for a bug report as JSON: browser, GPU, storage and error, but no prompts or images.
 *
 * @param kernels what was measured of them
 */
export async function collectDiagnostics(
  gpu: GpuState,
  error: ErrorRecord | null,
  kernels?: unknown,
): Promise<string> {
  const { userAgent, hardwareConcurrency, language } = navigator;
  // The browser may have no storage at all.
  const { storage } = navigator as Partial<Navigator>;
  const { quota = null, usage = null } = (await storage?.estimate()) ?? {};
  const facts = {
    userAgent,
    language,
    hardwareConcurrency,
    crossOriginIsolated,
    jspi: 'Suspending' in WebAssembly,
    videoEncoder: 'VideoEncoder' in globalThis,
    storage: { quota, usage, persisted: await storage?.persisted() },
    gpu,
    kernels,
    error,
  };
  return JSON.stringify(facts, null, 2);
}
