/* Goldens for the tests of the VAE and the tiny decoders, in Node and in the browser. */
import { at } from '../../../../contract';
import type { Backend } from '../../../../gpu';
import { readPicture } from '../../../../parity/golden';
import { joinLatents, splitLatents } from '../../../../pipeline/latents';
import { type ModelFolder, openSafetensors } from '../../../../weights';
import { openCheckpoint } from '../../../../weights/testing/checkpoint';
import { readModelConfig } from '../../model-config';
import type { ClipDecoder } from '../decoder';
import type { PlanarImage } from '../encoder';

/** Opens what these tests need of a folder laid out like the goldens. */
export async function openGoldens(folder: ModelFolder, model: ModelFolder) {
  const tensors = await openSafetensors(await folder.open('golden.safetensors'));
  const { vae: config } = await readModelConfig(model);
  const checkpoint = await openCheckpoint(model, 'vae');
  const [, , frames = 0, latentHeight = 0, latentWidth = 0] = tensors.shape('final_latents');
  const size = { frames, height: latentHeight, width: latentWidth };
  const latents = splitLatents(await tensors.read('final_latents'), size);
  return {
    folder,
    config,
    checkpoint,
    tensors,
    frames,
    size: { latentHeight, latentWidth },
    /** Frame f of the final latents, [z, h, w]. */
    latentFrame: (f: number) => at(latents, f),
    image: await readPicture(tensors, 'image_rgb_u8'),
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
  return joinLatents(frames, { height: 1, width: at(frames, 0).length / 3 });
}

/** Live bytes of all that is not the runtime's own. */
export function ownBytes(backend: Backend): number {
  const { categories, liveBytes } = backend.counters();
  return liveBytes - (categories.runtime?.live ?? 0);
}

/** The frames of the golden video, [1, 3, F, H, W]. */
export async function videoFrames(tensors: Goldens['tensors']): Promise<PlanarImage[]> {
  const [, , frames = 0, height = 0, width = 0] = tensors.shape('video');
  const data = splitLatents(await tensors.read('video'), { frames, height, width });
  return data.map((frame) => ({ data: frame, height, width }));
}
