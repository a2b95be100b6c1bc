import { decode } from 'fast-png';
import type { z } from 'zod';
import type { Backend } from '../gpu';
import type { KernelMode } from '../gpu/kernels';
import { readConfig } from '../models/layers/config-file';
import type { Frame } from '../pipeline/latents';
import type { RgbaImage } from '../pipeline/vision/squares';
import { blobFile, type Checkpoint, type ModelFolder, openSafetensors } from '../weights';

/** A folder of reference tensors, and what computes beside them. */
export interface Golden {
  readonly folder: ModelFolder;
  /** Of `golden.safetensors`. */
  readonly tensors: Checkpoint;
  readonly backend: Backend;
  /** Names of the files in `loras/`: a folder behind HTTP cannot be listed. */
  readonly loraFiles: readonly string[];
  /** The folder of the quick checker's weights, which its references lack. */
  readonly quickChecker?: ModelFolder | undefined;
  /** Keeps what a stage has on the device until the stage ends, and frees it then. */
  readonly own: <T extends { dispose(): void }>(resource: T) => T;
}

/**
 * What a stage computed, beside its reference: values, or the name of a tensor. Without such a tensor in the golden
 * there is no comparison. A sentence in place of what was computed says why there are no numbers.
 */
type Result = readonly [
  line: string,
  actual: ArrayLike<number> | string,
  expected?: ArrayLike<number> | string,
];
export type Results = AsyncGenerator<Result>;

/** A largest error: in any case; or in f32, and by mode where kernels of our own store f16. */
export type Tolerance =
  | number
  | { readonly f32: number; readonly f16?: Readonly<Record<KernelMode, number>> };

/** A part of the check. It runs where the golden has tensors of a `given` name; it is told these names. */
export type Stage<Of> = readonly [
  name: string,
  given: RegExp,
  tolerance: Tolerance,
  run: (of: Of, names: readonly string[]) => Results,
];

/** The fields of `golden.json`. @throws KinoraError `MODEL_CONFIG_INVALID` naming the first wrong one */
export const readFields = <T extends z.ZodType>({ folder }: Golden, schema: T) =>
  readConfig(folder, 'golden.json', schema);

async function readBytes(folder: ModelFolder, path: string) {
  const file = await folder.open(path);
  return Uint8Array.from(await file.read(0, file.size));
}

/** A file of the folder, read whole: it is small and read many times. */
export async function wholeFile(folder: ModelFolder, path: string) {
  return blobFile(path, new Blob([await readBytes(folder, path)]));
}

/** Opens a safetensors file of the folder. */
export async function openFile(folder: ModelFolder, path: string) {
  return openSafetensors(await wholeFile(folder, path));
}

/** A PNG of 8 bits. The browser's own decoder has no counterpart in Node, and the check shall be the same in both. */
export async function readPng(folder: ModelFolder, path: string): Promise<RgbaImage> {
  const { width, height, channels, data: values } = decode(await readBytes(folder, path));
  const data = new Uint8ClampedArray(4 * width * height).fill(255);
  for (const [i, value] of values.entries()) {
    data[4 * Math.floor(i / channels) + (i % channels)] = value;
  }
  return { width, height, data };
}

/** A picture [H, W, 3] of bytes. */
export async function readPicture(tensors: Checkpoint, name: string): Promise<Frame> {
  const [height = 0, width = 0] = tensors.shape(name);
  return frameOf({ width, height, data: await tensors.read(name) }, 3);
}

/** Bytes [H, W, channels] as planar [3, H, W] in −1…1. */
export function frameOf(
  { width, height, data: bytes }: { width: number; height: number; data: ArrayLike<number> },
  channels: number,
): Frame {
  const plane = height * width;
  const byte = (i: number) => bytes[(i % plane) * channels + Math.floor(i / plane)] ?? Number.NaN;
  const data = Float32Array.from({ length: 3 * plane }, (_, i) => byte(i) / 127.5 - 1);
  return { data, width, height };
}
