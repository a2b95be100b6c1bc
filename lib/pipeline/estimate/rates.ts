import { z } from 'zod';
import type { DeviceReport } from '../../contract';
import { usualKernels } from '../../contract/kernel-setting';
import type { DeviceOptions } from '../../contract/run';
import type { StoreFolder } from '../../weights/store';

const costs = [
  'optimise',
  'open',
  'text',
  'image',
  'load',
  'denoise',
  'decode',
  'tiny-decode',
  'check',
  'finish',
] as const;

/** Kinds of work; each has a pace of its own on a device. */
export type Cost = (typeof costs)[number];

/** What kind of device computes. */
export type DeviceClass = 'gpu' | 'emulated' | 'cpu';

/**
 * What was measured on a device with a model: seconds as a multiple of those of a usual device of its class,
 * of whole stages, with the kernels that are compiled in them.
 */
export type Paces = Readonly<Partial<Record<Cost, number>>>;

const gpu = {
  optimise: 20,
  open: 2,
  byte: 5e-9,
  pixel: 1e-6,
  pass: { operation: 1e-13, call: 0 },
  decode: { operation: 1e-13, call: 0, pixel: 3e-8 },
  check: 0.5,
  frame: 1e-3,
};

/**
 * Seconds of a usual device: of the prompt optimiser, of opening a model, of a byte of weights, a pixel of the
 * image, an operation and a graph of the network, a pixel that is scaled and encoded, a checked frame and a frame
 * that is written. A GPU is taken to compute 10 TFLOP/s and to read 200 MB/s; the emulated GPU and the CPU are
 * as two models found them on two cores: one where nearly all is graphs, and one where little is.
 */
export const usualRates: Readonly<Record<DeviceClass, typeof gpu>> = {
  gpu,
  emulated: {
    ...gpu,
    pixel: 2e-5,
    pass: { operation: 2e-9, call: 0.017 },
    decode: { operation: 2e-9, call: 0.008, pixel: 1e-7 },
  },
  cpu: {
    ...gpu,
    pass: { operation: 1.5e-10, call: 0.002 },
    decode: { operation: 1.5e-10, call: 0.001, pixel: 5e-8 },
  },
};

/**
 * Name and class of a device, under which its paces are remembered.
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

/** Name of the folder of the paces in the browser's private file system. */
export const ratesFolder = 'rates';
const ratesFile = 'rates.json';
/** Devices and models that are remembered; the one that was used longest ago goes first. */
const mostEntries = 24;

const storedSchema = z.array(
  z.tuple([z.string(), z.partialRecord(z.enum(costs), z.number().positive())]),
);

/**
 * The paces of a device with a model; empty where none were measured, or the file is damaged.
 *
 * @param key names device, backend and model
 */
export async function readPaces(folder: StoreFolder, key: string): Promise<Paces> {
  return (await readAll(folder)).find(([name]) => name === key)?.[1] ?? {};
}

/** Remembers what a run measured. @throws KinoraError `STORAGE_FULL` */
export async function keepPaces(folder: StoreFolder, key: string, measured: Paces): Promise<void> {
  const all = await readAll(folder);
  const before = all.find(([name]) => name === key)?.[1];
  const others = all.filter(([name]) => name !== key).slice(1 - mostEntries);
  await folder.writeText(ratesFile, JSON.stringify([...others, [key, { ...before, ...measured }]]));
}

async function readAll(folder: StoreFolder): Promise<z.infer<typeof storedSchema>> {
  try {
    return storedSchema.parse(JSON.parse((await folder.readText(ratesFile)) ?? '[]'));
  } catch {
    return []; // What cannot be read is measured again.
  }
}
