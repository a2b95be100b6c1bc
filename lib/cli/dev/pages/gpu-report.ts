import { appUrl } from '../../../contract';
import type { GpuReportApi, GpuReportRequest } from '../../../engine/gpu-report';
import type { SpeedReport } from '../../../models/wan/speed';
import { createWorkerClient } from '../../../predictions/worker-client';
import { failureText, tellReady } from './page';

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

const client = createWorkerClient<GpuReportApi>(
  'GPU report',
  () =>
    new Worker(new URL('../../../../workers/gpu-report.ts', import.meta.url), { type: 'module' }),
);

async function runReport(request: GpuReportRequest): Promise<string | null> {
  const { api, crashed } = client.open();
  const onReport = (report: SpeedReport) => void window.kinoraGpuReportSoFar?.(report);
  const base = appUrl('/models/wan2.2-ti2v-5b/').href;
  try {
    await Promise.race([api.run(base, request, onReport), crashed]);
    return null;
  } catch (thrown) {
    return failureText(thrown);
  } finally {
    client.close();
  }
}
