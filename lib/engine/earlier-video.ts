import { centred, type ModelManifest, sizeInPixels } from '../contract';
import type { Size } from '../contract/parameters';
import type { Backend } from '../gpu';
import { readEnd } from '../pipeline/checkpoints';
import type { VideoModel } from '../pipeline/model';
import type { VideoEnd } from '../pipeline/request';
import { frameImage, inspectVideo, readFrames } from '../video';
import { extendFrame } from '../video/continuation';

/**
 * The end of an earlier video, of which a run keeps the motion.
 *
 * @param before its last latents as a file, or where they are gone the video itself: its last frames are encoded again
 * @throws KinoraError as {@link readEnd} and `VideoModel.encodeFrames` do, and `VIDEO_UNREADABLE`
 */
export async function endOfEarlier(
  before: Blob,
  model: VideoModel,
  size: Size,
  backend: Backend,
  signal: AbortSignal,
): Promise<VideoEnd> {
  const native = model.manifest.nativeSizes[size];
  if (before.type !== 'video/mp4') return readEnd(before, model, native);
  const { frames, frameRate } = await inspectVideo(before);
  const shown = [];
  for await (const { pixels } of readFrames(
    before,
    lastFrames(model.manifest, frames, frameRate),
    frameRate,
  )) {
    const image = frameImage(extendFrame(pixels, native), centred, native, sizeInPixels(size));
    shown.push({ data: image, width: native.width, height: native.height });
  }
  const latents = await model.encodeFrames(backend, shown, signal);
  await backend.trim();
  return { latents, colours: null };
}

/**
 * The frames of a video that become the latent frames which a clip holds: at the model's own rate, also where there are
 * frames between them.
 */
export function lastFrames(
  {
    continuation,
    frameStride,
    framesPerSecond,
  }: Pick<ModelManifest, 'continuation' | 'frameStride' | 'framesPerSecond'>,
  frames: number,
  frameRate: number,
): number[] {
  const pace = Math.max(1, Math.round(frameRate / framesPerSecond));
  const wanted = (continuation.latents - 1) * frameStride;
  const there = Math.floor((frames - 1) / pace / frameStride) * frameStride;
  const count = 1 + Math.min(wanted, there);
  return Array.from({ length: count }, (_, i) => frames - 1 - (count - 1 - i) * pace);
}
