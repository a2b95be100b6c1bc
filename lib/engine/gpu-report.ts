import { exposeWorker } from '../contract';
import { createBackend, createTestedBackend } from '../gpu';
import { readModelConfig } from '../models/wan/model-config';
import { measureSpeed, type SpeedOptions, type SpeedReport } from '../models/wan/speed';
import { httpFolder } from '../weights';

/** A page's request to the worker. */
export interface GpuReportRequest extends SpeedOptions {
  /** `wasm`: the CPU, by ONNX Runtime; WebGPU when absent. */
  readonly backend?: 'wasm' | 'webgpu';
}

/** The worker of `npm run gpu-report` and of the report in the settings. */
const gpuReport = {
  /**
   * @param base address of the configuration of the 5B, with a trailing slash
   * @throws KinoraError as `measureSpeed` does
   */
  async run(
    base: string,
    { backend = 'webgpu', ...options }: GpuReportRequest,
    onReport: (report: SpeedReport) => void,
  ): Promise<SpeedReport> {
    const open = async () =>
      backend === 'wasm'
        ? createBackend('wasm')
        : (await createTestedBackend({ matrices: true })).backend;
    const config = await readModelConfig(httpFolder(new URL(base)));
    return measureSpeed(open, { id: 'wan2.2-ti2v-5b', config }, options, onReport);
  },
};

/** The worker's interface for the page. */
export type GpuReportApi = typeof gpuReport;

/** Starts the measurements in this worker; the page speaks to it over Comlink. */
export function startGpuReport(): void {
  exposeWorker(gpuReport);
}
