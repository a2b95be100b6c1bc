import { type DeviceReport, type KernelCheck, KinoraError } from '../../../../contract';
import { type Backend, probeDevice, selfTest } from '../../../../gpu';
import { measurePeak, type Peak } from '../../../../gpu/kernels/peak';
import type { ModelFolder } from '../../../../weights';
import { readModelConfig } from '../../config';
import { kernelCases } from './cases';
import { type KernelLine, type MeasureOptions, measureCase } from './measure';
import { type Projection, project } from './projection';

export type { KernelLine } from './measure';
export type { Projection } from './projection';

/** What a device's kernels reach; every field is filled in as it is known. */
export interface KernelReport {
  readonly model: string;
  /** ISO 8601. */
  readonly date: string;
  readonly browser: string;
  readonly device: DeviceReport;
  readonly languageFeatures: readonly string[];
  /** The runtime's kernels at small odd sizes. */
  readonly selfTest: readonly KernelCheck[];
  readonly peak: Peak | null;
  readonly lines: readonly KernelLine[];
  readonly projections: readonly Projection[];
}

/** Defaults depend on the device: a CPU emulation gets less to do. */
export type KernelBenchOptions = Partial<MeasureOptions>;

/**
 * Measures the kernels of a model's operators at its real widths, ours and the runtime's.
 *
 * @param folder the model's configuration
 * @param onReport takes the report so far whenever something is known
 * @throws KinoraError `WEBGPU_MISSING` where kernels of our own cannot run, and when the device is lost
 */
export async function benchmarkKernels(
  backend: Backend,
  folder: ModelFolder,
  options: KernelBenchOptions,
  onReport: (report: KernelReport) => void,
): Promise<KernelReport> {
  const { compute } = backend;
  if (!compute) throw new KinoraError('WEBGPU_MISSING');
  const config = await readModelConfig(folder);
  const device = await probeDevice();
  const { software } = device;
  const measured = {
    variants: options.variants ?? (software ? 2 : Number.POSITIVE_INFINITY),
    rounds: options.rounds ?? (software ? 2 : 5),
  };
  let report: KernelReport = {
    model: 'wan2.2-ti2v-5b',
    date: new Date().toISOString(),
    browser: navigator.userAgent,
    device,
    languageFeatures: [...navigator.gpu.wgslLanguageFeatures].sort(),
    selfTest: [],
    peak: null,
    lines: [],
    projections: [],
  };
  const add = (part: Partial<KernelReport>) => {
    report = { ...report, ...part };
    onReport(report);
  };
  add({});
  add({ selfTest: await selfTest(backend) });
  const peak = await measurePeak(backend, compute, { rounds: measured.rounds });
  add({ peak });
  for (const kernelCase of kernelCases(config, software ? 'small' : 'full')) {
    await measureCase(backend, compute, kernelCase, peak, measured, (line) => {
      const lines = [...report.lines, line];
      add({ lines, projections: project(config, lines) });
    });
  }
  return report;
}
