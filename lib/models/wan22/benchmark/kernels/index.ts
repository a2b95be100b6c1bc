import { type DeviceReport, type KernelCheck, KinoraError } from '../../../../contract';
import { type Backend, probeDevice, Scope, selfTest } from '../../../../gpu';
import type { Compute, KernelMode } from '../../../../gpu/kernels';
import { assignKernels } from '../../../../gpu/kernels/assign';
import { tunedFamilies } from '../../../../gpu/kernels/candidates';
import { measurePeak } from '../../../../gpu/kernels/peak';
import type { Peak } from '../../../../gpu/kernels/peak-rate';
import { type Timing, timeWork } from '../../../../gpu/kernels/time';
import { type TuningResult, tune } from '../../../../gpu/kernels/tune';
import { modesOf } from '../../../../gpu/kernels/variants';
import type { StageResult } from '../../../../pipeline/benchmark';
import type { ModelFolder } from '../../../../weights';
import { openBlocks } from '../../../wan/benchmark/blocks';
import { measureTinyDecoder } from '../../../wan/benchmark/stages';
import { passFlops } from '../../../wan/flops';
import { type ModelConfig, readModelConfig } from '../../config';
import { kernelCases, textTokens } from './cases';
import { type KernelLine, type MeasureOptions, measureCase } from './measure';
import { type Projection, project } from './projection';

export type { KernelLine } from './measure';

/** One block of the transformer at the model's widths, as a whole. */
export interface BlockLine {
  readonly mode: KernelLine['mode'];
  readonly tokens: number;
  readonly flops: number;
  readonly seconds: Timing;
  readonly rate: number;
}

/** What a device's kernels reach; every field is filled in as it is known. */
export interface KernelReport {
  readonly model: string;
  /** ISO 8601. */
  readonly date: string;
  readonly browser: string;
  readonly device: DeviceReport;
  readonly languageFeatures: readonly string[];
  /** Modes that this device has kernels of our own for, less those that its peak makes slower. */
  readonly modes: readonly KernelMode[];
  /** Features that the device is opened without, as the self-test fails with them. */
  readonly refused: readonly string[];
  /** The runtime's kernels at small odd sizes. */
  readonly selfTest: readonly KernelCheck[];
  readonly peak: Peak | null;
  /** What the check and the timing of our variants found, of modes so far; a family that several have is in the first. */
  readonly tuning: Readonly<Partial<Record<KernelMode, TuningResult>>>;
  readonly lines: readonly KernelLine[];
  readonly blocks: readonly BlockLine[];
  /** The small decoder on two latent frames of 1280×704, by the kernels that `exact` chooses; null where no block is measured. */
  readonly decoder: StageResult | null;
  readonly projections: readonly Projection[];
}

/** Defaults depend on the device: a CPU emulation gets less to do. */
export interface KernelBenchOptions extends Partial<MeasureOptions> {
  /** Whether variants of all modes are checked and tuned as they are before a first video. */
  readonly tune?: boolean;
  /** Tokens of the whole block that is measured before a decoded frame; 0 for neither. */
  readonly blockTokens?: number;
}

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
    modes: modesOf(compute),
    refused: backend.refused ?? [],
    selfTest: [],
    peak: null,
    tuning: {},
    lines: [],
    blocks: [],
    decoder: null,
    projections: [],
  };
  const add = (part: Partial<KernelReport>) => {
    report = { ...report, ...part };
    onReport(report);
  };
  add({});
  add({ selfTest: await selfTest(backend) });
  const peak = await measurePeak(backend, compute, { rounds: measured.rounds });
  // An emulated GPU shows that modes are right, not how fast they are.
  if (!software) compute.peak = peak;
  const modes = modesOf(compute);
  add({ peak, modes });
  if (options.tune ?? !software) {
    for (const mode of modes) {
      const tuning = { ...report.tuning, [mode]: await tuneMode(backend, compute, mode, report) };
      add({ tuning });
    }
  }
  for (const kernelCase of kernelCases(config, software ? 'small' : 'full')) {
    await measureCase(backend, compute, kernelCase, peak, measured, (line) => {
      const lines = [...report.lines, line];
      add({ lines, projections: project(config, lines) });
    });
  }
  const tokens = options.blockTokens ?? (software ? 0 : 4096);
  for (const mode of tokens > 0 ? (['runtime', ...modes] as const) : []) {
    await assignKernels(backend, mode);
    const seconds = await timeBlock(backend, config, tokens, measured.rounds);
    const flops = passFlops({ ...config.transformer, num_layers: 1 }, tokens, textTokens);
    const line = { mode, tokens, flops, seconds, rate: flops / seconds.truest };
    const blocks = [...report.blocks, line];
    add({ blocks, projections: project(config, report.lines, blocks) });
  }
  if (tokens > 0) {
    await assignKernels(backend, 'exact');
    const latent = { height: 44, width: 80 };
    add({ decoder: await measureTinyDecoder(backend, config, { latent, passes: 1 }) });
  }
  return report;
}

/** Tunes the families of a mode that no mode before it has. */
async function tuneMode(
  backend: Backend,
  compute: Compute,
  mode: KernelMode,
  { tuning, device }: Pick<KernelReport, 'tuning' | 'device'>,
): Promise<TuningResult> {
  const scope = new Scope(backend);
  const timing = !device.software;
  const known = new Set(Object.values(tuning).flatMap(({ tried }) => tried.map(({ key }) => key)));
  try {
    return await tune({
      families: tunedFamilies({ backend, compute, mode, timing, scope }).filter(
        ({ candidates }) => !candidates.some(({ key }) => known.has(key)),
      ),
      timing,
      compile: (kernels) => compute.compile(kernels),
      onRate: ({ key }, rate) => compute.rates.set(key, rate),
    });
  } finally {
    scope.dispose();
  }
}

async function timeBlock(backend: Backend, config: ModelConfig, tokens: number, rounds: number) {
  const options = {
    layers: 1,
    tokens,
    textTokens,
    precision: 'int8',
    maxChunkTokens: 4096,
  } as const;
  const blocks = await openBlocks(backend, config, options);
  try {
    return await timeWork(
      async (times) => {
        for (let i = 0; i < times; i++) await blocks.pass();
        await backend.settle();
      },
      { rounds },
    );
  } finally {
    await blocks.dispose();
  }
}
