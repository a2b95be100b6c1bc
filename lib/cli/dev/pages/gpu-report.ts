import { proxy } from 'comlink';
import { appUrl } from '../../../contract';
import type { GpuReportApi, GpuReportRequest } from '../../../engine/gpu-report';
import type { SpeedReport } from '../../../models/wan/speed';
import { inWorker, tellReady } from './in-worker';

declare global {
  interface Window {
    /** Measures this device; null when it went through, else the sentence that says why not. */
    kinoraGpuReport?: (request: GpuReportRequest) => Promise<string | null>;
    /** Where the driver takes the report so far. */
    kinoraGpuReportSoFar?: (report: SpeedReport) => unknown;
  }
}

window.kinoraGpuReport = runReport;
tellReady();

function runReport(request: GpuReportRequest): Promise<string | null> {
  const onReport = proxy((report: SpeedReport) => void window.kinoraGpuReportSoFar?.(report));
  const start = () =>
    new Worker(new URL('../../../../workers/gpu-report.ts', import.meta.url), { type: 'module' });
  return inWorker<GpuReportApi, null>(start, async (worker) => {
    await worker.run(appUrl('/models/wan2.2-ti2v-5b/').href, request, onReport);
    return null;
  });
}
