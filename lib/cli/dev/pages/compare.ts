import { sizeInPixels, sizes } from '../../../contract/parameters';
import type { DeviceOptions } from '../../../contract/run';
import { EngineDevice } from '../../../engine/device';
import { framesOfEnd } from '../../../engine/earlier-video';
import { assignKernels } from '../../../gpu/kernels/assign';
import { modelFamilies } from '../../../models';
import { type HeldEnds, measureHeldEnds } from '../../../pipeline/held-end';
import { openModel } from '../../../pipeline/open';
import { readFrames } from '../../../video/frames';
import { decodeImage } from '../../../video/image';
import { inspectVideo } from '../../../video/inspect';
import { openModelStore } from '../../../weights/store';
import { type Measures, measureVideo } from '../compare/measures';
import { tellReady } from './in-worker';

declare global {
  interface Window {
    /** Measures latent frames held as the end of the video in `#video`, with a model's VAE. */
    kinoraHeldEnds?: (model: string, device: DeviceOptions) => Promise<HeldEnds>;
    /** Measures the video in `#video` with the start image in `#image`. */
    kinoraMeasure?: (loop: boolean) => Promise<Measures>;
  }
}

const [image, video] = ['image', 'video'].map((id) => {
  const input = document.createElement('input');
  input.type = 'file';
  input.id = id;
  document.querySelector('main')?.append(input);
  return input;
});

window.kinoraMeasure = async (loop) => {
  const [still, file] = [image?.files?.[0], video?.files?.[0]];
  if (!still || !file) throw new TypeError('#image and #video need a file');
  const { frames, frameRate } = await inspectVideo(file);
  const all = Array.from({ length: frames }, (_, index) => index);
  async function* pictures(of: Blob) {
    for await (const { pixels } of readFrames(of, all, frameRate)) yield pixels;
  }
  return measureVideo(await decodeImage(still), pictures(file), loop);
};

/** Latent frames of a clip: the decoder has seen enough of the past. */
const latentsOfClip = 5;

window.kinoraHeldEnds = async (id, { backend: kind, kernels = 'exact' }) => {
  const file = video?.files?.[0];
  if (!file) throw new TypeError('#video needs a file');
  const sources = {
    families: modelFamilies,
    manifests: new URL('/models/', location.href),
    store: await openModelStore(),
  };
  const model = await openModel(id, sources);
  const device = new EngineDevice();
  try {
    const backend = await device.open(kind, kernels);
    if (kind === 'webgpu') await assignKernels(backend, kernels);
    const [size] = sizes;
    const shown = { native: model.manifest.nativeSizes[size], delivered: sizeInPixels(size) };
    const frames = await framesOfEnd(file, model.manifest, shown, latentsOfClip);
    return await measureHeldEnds(backend, model, frames, new AbortController().signal);
  } finally {
    await device.drop();
  }
};
tellReady();
