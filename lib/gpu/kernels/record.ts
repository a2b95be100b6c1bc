import type { DeviceReport } from '../../contract';
import { hash, type KernelMode } from './kernel';
import type { Peak } from './peak-rate';
import type { TuningResult } from './tune';

/** What is known of the kernels of one device in one browser version. Plain data, to be stored. */
export interface TuningRecord {
  readonly version: 1;
  /** Of the texts of all kernels; another set is tuned anew. */
  readonly kernelSet: string;
  /** Measured FLOP/s of multiply-adds in registers; null where it was not measured. */
  readonly peak: number | null;
  /** The same of 8-bit dot products, which the mode `fast` has; absent in older records. */
  readonly integerPeak?: number | null;
  readonly modes: Readonly<Partial<Record<KernelMode, TunedMode>>>;
  /** The variant that is running for the first time. Where one stands here at the start, it has not ended. */
  readonly trying: string | null;
  /** Why variants are not tried again, by their keys. */
  readonly excluded: Readonly<Record<string, string>>;
  /** Features that the device is opened without, as the self-test fails with them; absent where none was tested. */
  readonly refused?: readonly string[];
  /** How often our kernels have lost the device. */
  readonly losses: number;
}

/** What was measured in one mode. */
export interface TunedMode extends TuningResult {
  /** ISO 8601. */
  readonly date: string;
  /** Whether the user skipped the rest. */
  readonly skipped: boolean;
}

/** So many losses, and the runtime computes everything until the next version of browser or kernels. */
export const mostLosses = 2;

type Device = Pick<DeviceReport, 'adapter' | 'features' | 'limits'>;

/** Whether the browser does not tell which GPU it is, as Firefox does not. */
export function isNameless({ adapter }: Pick<Device, 'adapter'>): boolean {
  return Object.values(adapter).every((name) => name === '');
}

/** Name of the setting that the record of a device is stored under. A GPU without a name goes by what it can do. */
export function recordId(report: Device, userAgent: string): string {
  const { vendor, architecture, device, description } = report.adapter;
  const { features, limits } = report;
  const abilities = isNameless(report) ? hash(JSON.stringify([features, limits])) : '';
  const [browser = ''] = /(Firefox|Edg|Chrome|Version)\/\d+/.exec(userAgent) ?? [];
  const system = /Windows|Android|iPhone|iPad|Mac OS X|CrOS|Linux/.exec(userAgent)?.[0] ?? '';
  const names = [vendor, architecture, device, description || abilities];
  return ['kernels', ...names, browser, system].join('|');
}

/** Nothing is known yet. */
export function emptyRecord(kernelSet: string): TuningRecord {
  return {
    version: 1,
    kernelSet,
    peak: null,
    modes: {},
    trying: null,
    excluded: {},
    losses: 0,
  };
}

/**
 * A stored record as it is to be used now. A variant that was running when everything ended is excluded: it
 * hung, killed the tab, or lost the device.
 *
 * @returns an empty record for another set of kernels and for what is no record
 */
export function openRecord(stored: unknown, kernelSet: string): TuningRecord {
  const record = readRecord(stored);
  if (record?.kernelSet !== kernelSet) return emptyRecord(kernelSet);
  return record.trying === null ? record : withLoss(record, record.trying);
}

/** A stored record; null for anything else. */
export function readRecord(stored: unknown): TuningRecord | null {
  const record = stored as Partial<TuningRecord> | null | undefined;
  return record?.version === 1 && typeof record.losses === 'number' && record.modes !== undefined
    ? (record as TuningRecord)
    : null;
}

/** Clocks of one GPU differ by less. */
const largestDrift = 2;

/** Whether what a record remembers is of another GPU than one that reaches `multiplyAdd` FLOP/s. */
export function isOfOther({ peak }: TuningRecord, multiplyAdd: number): boolean {
  return peak !== null && Math.max(peak / multiplyAdd, multiplyAdd / peak) > largestDrift;
}

/** The measured peak of the device; null where it was not measured. */
export function peakOf({ peak, integerPeak = null }: TuningRecord): Peak | null {
  return peak === null ? null : { multiplyAdd: peak, integerDot: integerPeak };
}

/** The record after a variant, or one that is not known, has lost the device. */
export function withLoss(record: TuningRecord, key: string | null): TuningRecord {
  const excluded =
    key === null ? record.excluded : { ...record.excluded, [key]: 'it lost the GPU' };
  const modes = Object.fromEntries(
    Object.entries(record.modes).filter(
      ([, { winners }]) => !Object.values(winners).some((winner) => winner?.key === key),
    ),
  );
  return { ...record, modes, excluded, trying: null, losses: record.losses + 1 };
}
