import { centred, type ModelManifest, type PixelSize, sizes } from '../contract';
import type { Backend } from '../gpu';
import { readEnd } from '../pipeline/checkpoints';
import { type Frame, latentFrames } from '../pipeline/latents';
import type { VideoModel } from '../pipeline/model';
import type { VideoEnd } from '../pipeline/request';
import { frameImage, inspectVideo, readFrames } from '../video';
import { extendFrame } from '../video/frames';

/**
 * The end of an earlier video, of which a run keeps the motion.
 *
 * @param before its last latents as a file, or where they are gone the video itself: its last frames are encoded again
 * @param sizes at which the run computes, and of its video
 * @throws KinoraError as {@link readEnd} and `VideoModel.encodeFrames` do, and `VIDEO_UNREADABLE`
 */
export async function endOfEarlier(
  before: Blob,
  model: VideoModel,
  sizes: { readonly native: PixelSize; readonly delivered: PixelSize },
  backend: Backend,
  signal: AbortSignal,
): Promise<VideoEnd> {
  const { manifest } = model;
  if (before.type !== 'video/mp4') return readEnd(before, model, sizes.native);
  const frames = await framesOfEnd(before, manifest, sizes, manifest.continuation.latents);
  const latents = await model.encodeFrames(backend, frames, signal);
  await backend.trim();
  return { latents, colours: null };
}

/**
 * The frames at the end of a video that become latent frames of a model, at its size.
 *
 * @param latents how many are wanted; fewer where the video is shorter
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
async function framesOfEnd(
  video: Blob,
  manifest: ModelManifest,
  { native, delivered }: Parameters<typeof endOfEarlier>[2],
  latents: number,
): Promise<Frame[]> {
  const { frames, frameRate } = await inspectVideo(video);
  const indices = lastFrames(manifest, latents, frames, frameRate);
  const shown: Frame[] = [];
  for await (const { pixels } of readFrames(video, indices, frameRate)) {
    const data = frameImage(extendFrame(pixels, native), centred, native, delivered);
    shown.push({ data, width: native.width, height: native.height });
  }
  return shown;
}

/** The last frames of a video, as many as a clip of the model has, in its size. @throws as {@link framesOfEnd} */
export async function framesOfClip(video: Blob, { manifest }: VideoModel): Promise<Frame[]> {
  const { width, height } = await inspectVideo(video);
  const native = manifest.nativeSizes[sizes[width < height ? 1 : 0]];
  const latents = latentFrames(manifest.maxClipFrames, manifest.frameStride);
  return framesOfEnd(video, manifest, { native, delivered: native }, latents);
}

/** Whole latent frames at the model's own rate, also where the video has frames between those of the model. */
export function lastFrames(
  { frameStride, framesPerSecond }: Pick<ModelManifest, 'frameStride' | 'framesPerSecond'>,
  latents: number,
  frames: number,
  frameRate: number,
): number[] {
  const pace = Math.max(1, Math.round(frameRate / framesPerSecond));
  const there = Math.floor((frames - 1) / pace / frameStride);
  const count = 1 + Math.min(latents - 1, there) * frameStride;
  return Array.from({ length: count }, (_, i) => frames - 1 - (count - 1 - i) * pace);
}
