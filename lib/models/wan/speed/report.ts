import type { DeviceReport, KernelCheck } from '../../../contract';
import type { Backend } from '../../../gpu';
import type { KernelMode } from '../../../gpu/kernels';
import type { Peak } from '../../../gpu/kernels/peak-rate';
import type { Timing } from '../../../gpu/kernels/time';
import type { TuningResult } from '../../../gpu/kernels/tune';
import type { ModelConfig } from '../model-config';
import type { Projection } from './projection';

/** Sources of lines: operators, and networks with random weights. */
export type Measured =
  | 'linear'
  | 'attention'
  | 'convolution'
  | 'block'
  | 'frame'
  | 'decoder'
  | 'video';

/** How fast something is in one mode. */
export interface SpeedLine {
  readonly measurement: Measured;
  /** Of what was computed, for people. */
  readonly size: string;
  /** `ONNX Runtime`, or a variant of ours; empty for a network. */
  readonly variant: string;
  readonly mode: KernelMode | 'runtime';
  readonly flops: number;
  /** Of one execution. Null where it could not be used. */
  readonly seconds: Timing | null;
  /** Operations per second, of the truest time. */
  readonly rate: number | null;
  /** Of the measured peak of the arithmetic that it uses; null where that was not measured. */
  readonly share: number | null;
  /** Relative RMS to the runtime's result on the same operands. */
  readonly difference: number | null;
  /** Seconds that the measured operators come to for it; null for an operator. */
  readonly projected: number | null;
  /** Why it could not be used. */
  readonly reason: string | null;
}

/** The outcome of a measurement. */
export interface Outcome {
  readonly name: string;
  readonly seconds: number;
  /** Why it has no figures, or only some. */
  readonly problem: string | null;
}

/** What a device reaches; every field is filled in as it is known. */
export interface SpeedReport {
  readonly model: string;
  /** ISO 8601. */
  readonly date: string;
  readonly browser: string;
  /** Null where the CPU computes. */
  readonly device: DeviceReport | null;
  readonly languageFeatures: readonly string[];
  /** Modes that this device has kernels of our own for, less those that its peak makes slower. */
  readonly modes: readonly KernelMode[];
  /** Features that the device is opened without, as the self-test fails with them. */
  readonly refused: readonly string[];
  readonly outcomes: readonly Outcome[];
  /** The runtime's kernels at small odd sizes. */
  readonly selfTest: readonly KernelCheck[];
  readonly peak: Peak | null;
  /** Check and timing of our variants, of modes so far; a family that several have is in the first. */
  readonly tuning: Readonly<Partial<Record<KernelMode, TuningResult>>>;
  readonly lines: readonly SpeedLine[];
  readonly projections: readonly Projection[];
}

/** The measurements to make. Defaults depend on the device: one that the CPU emulates gets less to do. */
export interface SpeedOptions {
  /** Everything, which takes slower cards an hour. */
  readonly all?: boolean;
  /** One measurement, by its name. */
  readonly only?: string;
  /** Tokens of the block, an even number, and then of the video; 4096, and 64 where the CPU computes. */
  readonly tokens?: number;
  /** Variants of each kernel, the best guesses first. */
  readonly variants?: number;
  /** Measurements of each. */
  readonly rounds?: number;
}

/** Dependencies of a measurement. */
export interface Run {
  readonly backend: Backend;
  readonly config: ModelConfig;
  readonly options: SpeedOptions;
  readonly rounds: number;
  /** Whether the CPU computes, or emulates a GPU. */
  readonly slow: boolean;
  /** So far. */
  readonly report: () => SpeedReport;
  readonly add: (part: Partial<SpeedReport>) => void;
  readonly addLine: (line: SpeedLine) => void;
}
