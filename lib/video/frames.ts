import { BlobSource, Input, MP4, VideoSampleSink } from 'mediabunny';
import { KinoraError } from '../contract';
import type { Pixels } from './image';

/**
 * Decodes single frames of a video, in ascending order.
 *
 * @param indices ascending, from 0
 * @param frameRate frames per second
 * @throws KinoraError `VIDEO_UNREADABLE`, also where the browser has no decoder for it
 */
export async function* readFrames(
  file: Blob,
  indices: readonly number[],
  frameRate: number,
): AsyncGenerator<{ readonly index: number; readonly pixels: Pixels }> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw unreadable('The file has no video.');
    if (!(await track.canDecode())) throw unreadable('This browser cannot decode the video.');
    const first = await track.getFirstTimestamp();
    // The middle of a frame is inside of it however its time was rounded.
    const times = indices.map((index) => first + (index + 0.5) / frameRate);
    let position = 0;
    for await (const sample of new VideoSampleSink(track).samplesAtTimestamps(times)) {
      const index = indices[position];
      position += 1;
      if (!sample || index === undefined) throw unreadable('A frame of the video is missing.');
      const { displayWidth: width, displayHeight: height } = sample;
      try {
        // `willReadFrequently` keeps the canvas on the CPU.
        const context = new OffscreenCanvas(width, height).getContext('2d', {
          willReadFrequently: true,
        });
        if (!context) throw unreadable('The browser has no canvas for the video.');
        sample.draw(context, 0, 0);
        yield {
          index,
          pixels: { width, height, data: context.getImageData(0, 0, width, height).data },
        };
      } finally {
        sample.close();
      }
    }
  } catch (cause) {
    if (cause instanceof KinoraError) throw cause;
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw unreadable(`The video cannot be decoded: ${detail}`, cause);
  } finally {
    input.dispose();
  }
}

function unreadable(sentence: string, cause?: unknown): KinoraError {
  return new KinoraError('VIDEO_UNREADABLE', sentence, {
    cause,
    remedy: 'Use a complete MP4 file and a browser that plays H.264.',
  });
}
