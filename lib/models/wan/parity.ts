/** What the comparisons of all Wan models with reference tensors have in common. */
import { at } from '../../contract';
import { type LatentSize, latentFrame } from '../../pipeline/latents';
import {
  blobFile,
  type Checkpoint,
  type ModelFolder,
  openSafetensors,
  type WeightFile,
} from '../../weights';
import type { ClipDecoder } from './vae';

/** Tolerance of the loop with weights in 8-bit blocks of 32. */
export const int8Tolerance = 5e-2;

/** Opens a safetensors file of the folder. */
export async function openFile(folder: ModelFolder, path: string) {
  return openSafetensors(await readFile(folder, path));
}

/** A file of the folder, read whole: it is small and read many times. */
export async function readFile(folder: ModelFolder, path: string): Promise<WeightFile> {
  const file = await folder.open(path);
  const bytes = await file.read(0, file.size);
  return blobFile(path, new Blob([bytes as Uint8Array<ArrayBuffer>]));
}

/** A picture [H, W, 3] of bytes as planar [3, H, W] in −1…1. */
export async function goldenImage(tensors: Checkpoint, name: string) {
  const [height = 0, width = 0] = tensors.shape(name);
  const bytes = await tensors.read(name);
  const data = new Float32Array(3 * height * width);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      data[c * height * width + i] = (bytes[i * 3 + c] as number) / 127.5 - 1;
    }
  }
  return { data, height, width };
}

/** Decodes latents [C, F, h, w]: every frame, in order. */
export async function decodeFrames(
  decoder: ClipDecoder,
  values: Float32Array,
  size: LatentSize,
): Promise<Float32Array[]> {
  const frames: Float32Array[] = [];
  try {
    const clip = Array.from({ length: size.frames }, (_, f) => latentFrame(values, size, f));
    for await (const frame of decoder.decodeClip(clip)) frames.push(frame);
  } finally {
    decoder.dispose();
  }
  return frames;
}

/** Frames [3, H, W] as [3, T, H, W], the layout of the references. */
export function videoOf(frames: readonly Float32Array[]): Float32Array {
  const plane = at(frames, 0).length / 3;
  const video = new Float32Array(3 * frames.length * plane);
  for (const [t, frame] of frames.entries()) {
    for (let c = 0; c < 3; c++) {
      const source = frame.subarray(c * plane, (c + 1) * plane);
      video.set(source, (c * frames.length + t) * plane);
    }
  }
  return video;
}

/** The rows of text embeddings that are not padding. */
export function promptRows(embeds: Float32Array, width: number): Float32Array {
  let length = embeds.length / width;
  const empty = (row: number) =>
    embeds.subarray(row * width, (row + 1) * width).every((value) => value === 0);
  while (length > 1 && empty(length - 1)) length -= 1;
  return embeds.slice(0, length * width);
}

/** A file of a LoRA, and how much it counts. */
export interface ScaledFile {
  readonly file: string;
  readonly scale: number;
}

/** `…_lora_a08_b17` in a golden's name: adapter a at 0.8 and b at 1.7. */
export function adaptersOf(name: string): { letter: string; scale: number }[] {
  const tail = name.split('_lora_')[1] ?? '';
  return [...tail.matchAll(/([a-z]+)(\d+)/g)].map(([, letter = '', digits = '']) => ({
    letter,
    scale: Number(digits) / 10,
  }));
}

/** A file of a LoRA in the name of a stage. */
export const labelOf = ({ file, scale }: ScaledFile) =>
  `${file.replace('.safetensors', '')} ${scale}`;

/** Every way to take one file per adapter; a file belongs to the adapter whose letter it starts with. */
export function combinations(
  adapters: readonly { letter: string; scale: number }[],
  files: readonly string[],
): ScaledFile[][] {
  return adapters.reduce<ScaledFile[][]>(
    (choices, { letter, scale }) =>
      choices.flatMap((choice) =>
        files
          .filter((file) => file.startsWith(`${letter}_`))
          .map((file) => [...choice, { file, scale }]),
      ),
    [[]],
  );
}
