/* Goldens for the tests of the VAE and the tiny decoders, in Node and in the browser. */
import type { Backend } from '../../../../gpu';
import { type ModelFolder, openCheckpoint, openSafetensors } from '../../../../weights';
import { readModelConfig } from '../../../wan22/config';
import type { ClipDecoder } from '../decoder';
import type { PlanarImage } from '../encoder';

/** Opens what these tests need of a folder laid out like the goldens. */
export async function openGoldens(folder: ModelFolder, model: ModelFolder) {
  const tensors = await openSafetensors(await folder.open('golden.safetensors'));
  const { vae: config } = await readModelConfig(model);
  const checkpoint = await openCheckpoint(model, 'vae');
  const latents = await tensors.read('final_latents');
  const [, z = 0, frames = 0, latentHeight = 0, latentWidth = 0] = tensors.shape('final_latents');
  const plane = latentHeight * latentWidth;
  /** Frame f of the final latents, [z, h, w]. */
  const latentFrame = (f: number): Float32Array => {
    const out = new Float32Array(z * plane);
    for (let c = 0; c < z; c++) {
      const start = (c * frames + f) * plane;
      out.set(latents.subarray(start, start + plane), c * plane);
    }
    return out;
  };
  const [height = 0, width = 0] = tensors.shape('image_rgb_u8');
  const bytes = await tensors.read('image_rgb_u8');
  const data = new Float32Array(bytes.length);
  for (let i = 0; i < height * width; i++) {
    for (let c = 0; c < 3; c++) {
      data[c * height * width + i] = (bytes[i * 3 + c] ?? 0) / 127.5 - 1;
    }
  }
  return {
    folder,
    config,
    checkpoint,
    tensors,
    frames,
    size: { latentHeight, latentWidth },
    latentFrame,
    image: { data, height, width },
  };
}

export type Goldens = Awaited<ReturnType<typeof openGoldens>>;

/** Everything that a generator yields. */
export async function collect<T>(values: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const value of values) all.push(value);
  return all;
}

/** All golden latents, frame by frame. */
export function latentsOf(goldens: Goldens): Float32Array[] {
  return Array.from({ length: goldens.frames }, (_, f) => goldens.latentFrame(f));
}

/** All pixel frames of the golden latents. */
export function decodeAll(decoder: ClipDecoder, goldens: Goldens): Promise<Float32Array[]> {
  return collect(decoder.decodeClip(latentsOf(goldens)));
}

/** Frames [3, H, W] as one clip [3, T, H, W]. */
export function clipOf(frames: readonly Float32Array[]): Float32Array {
  const plane = (frames[0]?.length ?? 0) / 3;
  const clip = new Float32Array(3 * frames.length * plane);
  for (const [t, frame] of frames.entries()) {
    for (let c = 0; c < 3; c++) {
      clip.set(frame.subarray(c * plane, (c + 1) * plane), (c * frames.length + t) * plane);
    }
  }
  return clip;
}

/** Live bytes of all that is not the runtime's own. */
export function ownBytes(backend: Backend): number {
  const { categories, liveBytes } = backend.counters();
  return liveBytes - (categories.runtime?.live ?? 0);
}

/** The frames of the golden video, [1, 3, F, H, W]. */
export async function videoFrames(tensors: Goldens['tensors']): Promise<PlanarImage[]> {
  const [, , frames = 0, height = 0, width = 0] = tensors.shape('video');
  const video = await tensors.read('video');
  const plane = height * width;
  return Array.from({ length: frames }, (_, f) => {
    const data = new Float32Array(3 * plane);
    for (let c = 0; c < 3; c++) {
      const at = (c * frames + f) * plane;
      data.set(video.subarray(at, at + plane), c * plane);
    }
    return { data, height, width };
  });
}
