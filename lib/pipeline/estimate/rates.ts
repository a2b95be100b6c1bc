import type { DeviceReport } from '../../contract';
import { usualKernels } from '../../contract/kernel-setting';
import type { DeviceOptions } from '../../contract/run';
import type { StoreFolder } from '../../weights/store';
import type { Cost } from './stages';

/** How fast a device does the work of one cost. */
export interface Rate {
  /** Seconds for one unit of work. */
  readonly perUnit: number;
  /** Seconds before the first unit of a run: kernels are compiled, files are opened. */
  readonly startup: number;
}

/** What is expected of a device, whatever the model. */
export interface UsualRate extends Rate {
  /** Seconds for each graph that is run, besides its units; none when absent. A measured rate has them in its units. */
  readonly perCall?: number;
  /** Seconds for each pixel that is scaled and encoded on the way; as `perCall`. */
  readonly perPixel?: number;
}

/** Measured rates of a device with a model. */
export type Rates = Readonly<Partial<Record<Cost, Rate>>>;

/** What kind of device computes. */
export type DeviceClass = 'gpu' | 'emulated' | 'cpu';

/*
 * What is expected where nothing was measured: ratios between stages rather than truths. Denoising on a GPU
 * is taken as 10 TFLOP/s, reading as 200 MB/s; the emulated GPU and the CPU are as two models found them on two
 * cores of a server: the tiny one, where nearly all is calls, and the demonstration model, where little is.
 */
const gpu: Readonly<Record<Cost, UsualRate>> = {
  optimise: { perUnit: 20, startup: 0 },
  open: { perUnit: 2, startup: 0 },
  text: { perUnit: 5e-9, startup: 1 },
  image: { perUnit: 1e-6, startup: 1 },
  load: { perUnit: 5e-9, startup: 0 },
  denoise: { perUnit: 1e-13, startup: 2 },
  decode: { perUnit: 1e-13, perPixel: 3e-8, startup: 2 },
  'tiny-decode': { perUnit: 1e-13, perPixel: 3e-8, startup: 2 },
  check: { perUnit: 0.5, startup: 0 },
  finish: { perUnit: 1e-3, startup: 0 },
};

/** What is expected of a device before anything was measured on it. */
export const usualRates: Readonly<Record<DeviceClass, Readonly<Record<Cost, UsualRate>>>> = {
  gpu,
  emulated: {
    ...gpu,
    text: { perUnit: 5e-9, startup: 4 },
    image: { perUnit: 1e-5, startup: 7 },
    denoise: { perUnit: 2e-9, perCall: 0.017, startup: 3 },
    decode: { perUnit: 2e-9, perCall: 0.008, perPixel: 1e-7, startup: 6 },
    'tiny-decode': { perUnit: 2e-9, perCall: 0.008, perPixel: 1e-7, startup: 6 },
  },
  cpu: {
    ...gpu,
    text: { perUnit: 5e-9, startup: 0.5 },
    denoise: { perUnit: 1.5e-10, perCall: 0.002, startup: 0.5 },
    decode: { perUnit: 1.5e-10, perCall: 0.001, perPixel: 5e-8, startup: 0.5 },
    'tiny-decode': { perUnit: 1.5e-10, perCall: 0.001, perPixel: 5e-8, startup: 0.5 },
  },
};

/**
 * Name and class of a device, under which its rates are remembered.
 *
 * @param gpu null for the CPU
 * @param threads of the CPU
 * @param set the kernels, what is usual on the device when absent
 */
export function deviceOf(
  gpu: Pick<DeviceReport, 'adapter' | 'software'> | null,
  threads: number,
  { kernels }: Pick<DeviceOptions, 'kernels'> = {},
): { readonly name: string; readonly kind: DeviceClass } {
  if (!gpu) return { name: `wasm ${threads}`, kind: 'cpu' };
  const { adapter, software } = gpu;
  const setting = kernels ?? usualKernels(software);
  const ownKernels = setting === 'runtime' ? [] : [setting];
  return {
    name: ['webgpu', ...Object.values(adapter), ...ownKernels].join(' '),
    kind: software ? 'emulated' : 'gpu',
  };
}

/** What a new measurement counts against what was remembered. */
const newShare = 0.5;

/** Remembered rates with those of a run that was just measured. */
export function mergeRates(remembered: Rates, measured: Rates): Rates {
  const merged: Partial<Record<Cost, Rate>> = { ...remembered };
  for (const [cost, rate] of Object.entries(measured) as [Cost, Rate][]) {
    const before = remembered[cost] ?? rate;
    const mean = (part: keyof Rate) => before[part] + newShare * (rate[part] - before[part]);
    merged[cost] = { perUnit: mean('perUnit'), startup: mean('startup') };
  }
  return merged;
}

/** Name of the folder of the rates in the browser's private file system. */
export const ratesFolder = 'rates';
const ratesFile = 'rates.json';
/** Devices and models that are remembered; the one that was used longest ago goes first. */
const mostEntries = 24;

/**
 * The rates of a device with a model; empty where none were measured, or the file cannot be read.
 *
 * @param key names device, backend and model
 */
export async function readRates(folder: StoreFolder, key: string): Promise<Rates> {
  return (await readAll(folder)).find(([name]) => name === key)?.[1] ?? {};
}

/** Remembers what a run measured. @throws KinoraError `STORAGE_FULL` */
export async function keepRates(folder: StoreFolder, key: string, measured: Rates): Promise<void> {
  const all = await readAll(folder);
  const before = all.find(([name]) => name === key)?.[1] ?? {};
  const others = all.filter(([name]) => name !== key).slice(1 - mostEntries);
  const entries = [...others, [key, mergeRates(before, measured)] as const];
  await folder.writeText(ratesFile, JSON.stringify(entries));
}

async function readAll(folder: StoreFolder): Promise<(readonly [string, Rates])[]> {
  try {
    const entries: unknown = JSON.parse((await folder.readText(ratesFile)) ?? '[]');
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    return []; // Then it is measured again.
  }
}

function isEntry(entry: unknown): entry is readonly [string, Rates] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false;
  const rates: unknown = entry[1];
  return typeof rates === 'object' && rates !== null && Object.values(rates).every(isRate);
}

function isRate(rate: Partial<Rate> | null): boolean {
  const isTime = (value: number | undefined) => Number.isFinite(value) && (value ?? -1) >= 0;
  return isTime(rate?.perUnit) && isTime(rate?.startup);
}
