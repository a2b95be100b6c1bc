import { at, type KernelSetting, type Precision } from '../../contract';
import type { Backend } from '../../gpu';
import type { ModelFolder } from '../../weights';
import type { Meter, RunRecord } from './meter';

/** What one stage took: the median of several passes, for one layer of it. */
export interface StageResult {
  readonly stage: string;
  /** Passes that were measured. */
  readonly passes: number;
  readonly seconds: number;
  readonly flop: number;
  readonly flopPerSecond: number;
  /** Bytes of the weights that it uses: what has to be uploaded for it. */
  readonly weightBytes: number;
  /** Bytes of everything else that graphs read and wrote, without what stays inside a graph. */
  readonly activationBytes: number;
  /** Highest live bytes on the device, of everything that the stage holds. */
  readonly peakBytes: number;
}

/** What to measure; a model takes of it what its layers have. */
export interface BenchmarkOptions {
  readonly layers: number;
  readonly tokens: number;
  /** Rows of the prompt that the transformer sees, and of the text encoder. */
  readonly textTokens: number;
  /** Size of the frames that enter the VAE's level; absent, that of a frame of the clip. */
  readonly latent?: { readonly height: number; readonly width: number };
  /** Level of the VAE's decoder, from 0. */
  readonly level: number;
  readonly precision: Precision;
  readonly passes: number;
  /** Chunks of the transformer, at most. */
  readonly maxChunkTokens: number;
  /** What computes on a GPU. */
  readonly kernels: KernelSetting;
}

/** A part of a model that can be measured on its own. */
export interface BenchmarkStage {
  readonly name: string;
  run(backend: Backend): Promise<StageResult[]>;
}

/** A model family that can be measured. */
export interface BenchmarkFamily {
  /** Measurements of single layers with random weights of the model's widths. */
  benchmarkStages(
    configuration: ModelFolder,
    options: BenchmarkOptions,
  ): Promise<readonly BenchmarkStage[]>;
}

/**
 * Measures one layer of each part of a model with random weights of its real widths.
 *
 * @param onResult takes each line as it is known
 */
export async function benchmarkModel(
  backend: Backend,
  stages: readonly BenchmarkStage[],
  onResult: (result: StageResult) => void,
): Promise<StageResult[]> {
  const results: StageResult[] = [];
  for (const stage of stages) {
    for (const result of await stage.run(backend)) {
      results.push(result);
      onResult(result);
    }
  }
  return results;
}

/** A first pass that takes longer counts: compiling is a small part of it. */
const longPassSeconds = 5;

/**
 * Runs `pass` `warmUps` times, which also compiles, and then `passes` times. A first pass that takes long counts alone.
 *
 * @returns the records of each counted pass
 */
export async function measure(
  meter: Meter,
  passes: number,
  pass: () => Promise<void>,
  warmUps = 1,
): Promise<RunRecord[][]> {
  const timed = async () => {
    await pass();
    await meter.backend.settle();
    return meter.take();
  };
  meter.take();
  const first = await timed();
  const seconds = first.reduce((sum, record) => sum + record.seconds, 0);
  if (seconds > longPassSeconds) return [first];
  for (let i = 1; i < warmUps; i++) await timed();
  const all: RunRecord[][] = [];
  for (let i = 0; i < passes; i++) all.push(await timed());
  return all;
}

/** The middle value, the upper one of two; NaN where there is none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Sums the runs of some graphs in each pass. */
export function summarise(
  stage: string,
  passes: readonly (readonly RunRecord[])[],
  belongs: (graph: string) => boolean,
  { flop, layers, peakBytes }: { flop: number; layers: number; peakBytes: number },
): StageResult {
  const own = passes.map((records) => records.filter(({ graph }) => belongs(graph)));
  const sum = (records: readonly RunRecord[], part: 'seconds' | 'activationBytes') =>
    records.reduce((total, run) => total + run[part], 0) / layers;
  const seconds = median(own.map((records) => sum(records, 'seconds')));
  const weights = new Set(at(own, 0).flatMap((run) => run.weights));
  const weightBytes = [...weights].reduce((total, { bytes }) => total + bytes, 0) / layers;
  return {
    stage,
    passes: passes.length,
    seconds,
    flop,
    flopPerSecond: flop / seconds,
    weightBytes,
    activationBytes: sum(at(own, 0), 'activationBytes'),
    peakBytes,
  };
}
