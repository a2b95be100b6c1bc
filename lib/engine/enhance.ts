import { type EnhanceRequest, finishedFormat, framesInFile, type ProgressEvent } from '../contract';
import { coverCrop, createVideoWriter, inspectVideo, readFrames } from '../video';
import { Finisher, type FinishingNetworks } from './finisher';

/**
 * Decodes a finished video, frame by frame, and encodes it enlarged or with frames in between.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`, `OUT_OF_MEMORY`, `ENCODER_FAILED`; the signal's reason
 */
export async function enhanceVideo(
  request: EnhanceRequest,
  networks: FinishingNetworks,
  signal: AbortSignal,
  report: (event: ProgressEvent) => void,
): Promise<Blob> {
  const { file, finishing, loop } = request;
  const { width, height, frames, frameRate } = await inspectVideo(file);
  await networks.upscaler?.requireRoom({ width, height }, 2);
  // The last frame of a loop is left out already.
  const inFile = framesInFile(loop ? frames + 1 : frames, { ...finishing, loop });
  const format = finishedFormat({ width, height, frameRate }, finishing);
  const output = await createVideoWriter({ ...format, frames: inFile });
  const finisher = new Finisher({
    source: { width, height },
    target: format,
    finishing,
    frames,
    loop,
    ...networks,
    signal,
    write: (planes) => output.add(planes),
  });
  try {
    const indices = Array.from({ length: frames }, (_, index) => index);
    for await (const { index, pixels } of readFrames(file, indices, frameRate)) {
      signal.throwIfAborted();
      await finisher.add({ data: coverCrop(pixels, width, height), width, height });
      report({ type: 'frame', frame: index + 1, frames });
    }
    return await output.finish(await finisher.end());
  } finally {
    finisher.dispose();
    await output.cancel();
  }
}
