import type { Safety } from '../contract';
import { type Backends, SafetyCheck, type SafetyChecker, sampledFrames } from '../safety';
import { coverCrop, inspectVideo, readFrames } from '../video';

/**
 * Checks a finished video: decodes the frames that a run looks at, and scores them.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`; the signal's reason
 */
export async function checkVideo(
  file: Blob,
  checker: SafetyChecker,
  backends: Backends,
  signal: AbortSignal,
): Promise<Safety> {
  const { frames, frameRate } = await inspectVideo(file);
  const indices = sampledFrames(frames);
  const check = new SafetyCheck(checker);
  for await (const { index, pixels } of readFrames(file, indices, frameRate)) {
    signal.throwIfAborted();
    const { width, height } = pixels;
    await check.step.apply({ data: coverCrop(pixels, width, height), width, height }, index);
  }
  return check.verdict(backends, signal);
}
