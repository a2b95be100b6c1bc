import { BlobSource, Input, MP4, type VideoSample, VideoSampleSink } from 'mediabunny';
import { KinoraError } from '../contract';
import { type Pixels, toPng } from './image';
import { inspectVideo } from './inspect';
import { yuvToRgba } from './yuv';

/**
 * One frame of a video as a PNG.
 *
 * @param index from 0; the last frame when absent
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function readFrameImage(file: Blob, index?: number): Promise<Blob> {
  return toPng(await readFrame(file, index));
}

/** The pixels of one frame; otherwise like {@link readFrameImage}. */
export async function readFrame(file: Blob, index?: number): Promise<Pixels> {
  const { frames, frameRate } = await inspectVideo(file);
  for await (const { pixels } of readFrames(file, [index ?? frames - 1], frameRate)) return pixels;
  throw unreadable('A frame of the video is missing.');
}

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
      try {
        yield { index, pixels: await pixelsOf(sample) };
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

/** Converted here where the planes can be read, because browsers convert with errors (README, "Colours"). */
async function pixelsOf(sample: VideoSample): Promise<Pixels> {
  const { displayWidth: width, displayHeight: height, visibleRect, colorSpace, format } = sample;
  // Our own videos have these formats; the browser draws others.
  const isOwn = sample.rotation === 0 && !colorSpace.fullRange && colorSpace.matrix === 'bt709';
  const isPlain = width === visibleRect.width && height === visibleRect.height;
  if (isOwn && isPlain && (format === 'I420' || format === 'NV12')) {
    const bytes = new Uint8Array(sample.allocationSize());
    const [y, u, v] = await sample.copyTo(bytes);
    if (y && u) {
      // In NV12, V follows each U.
      const rest = v ? ({ u, v, step: 1 } as const) : nv12(u);
      return { width, height, data: yuvToRgba(bytes, { y, ...rest }, width, height) };
    }
  }
  // `willReadFrequently` keeps the canvas on the CPU.
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  if (!context) throw unreadable('The browser has no canvas for the video.');
  sample.draw(context, 0, 0);
  return { width, height, data: context.getImageData(0, 0, width, height).data };
}

function nv12(u: PlaneLayout) {
  return { u, v: { ...u, offset: u.offset + 1 }, step: 2 } as const;
}

function unreadable(sentence: string, cause?: unknown): KinoraError {
  return new KinoraError('VIDEO_UNREADABLE', sentence, {
    cause,
    remedy: 'Use a complete MP4 file and a browser that plays H.264.',
  });
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/**
 * The last frame of a video as the start image of one that continues it.
 *
 * @param native the size at which the model computes
 * @returns a PNG
 * @throws KinoraError `VIDEO_UNREADABLE`
 */
export async function continuationImage(video: Blob, native: Size): Promise<Blob> {
  return toPng(extendFrame(await readFrame(video), native));
}

/**
 * A frame with the margin that was cut off when the model's frame was scaled to it, filled with its mirror
 * image. Without it the model would be given a cut-out: the continuation would start enlarged, by 2.3 % at
 * 1280×720, and each further one again. The margin itself is cut off again, so nobody sees it.
 */
export function extendFrame(frame: Pixels, native: Size): Pixels {
  // The size of the model's frame when it is scaled to cover the video's.
  const scale = Math.max(frame.width / native.width, frame.height / native.height);
  const width = Math.max(frame.width, Math.round(native.width * scale));
  const height = Math.max(frame.height, Math.round(native.height * scale));
  const left = Math.floor((width - frame.width) / 2);
  const top = Math.floor((height - frame.height) / 2);
  const data = new Uint8ClampedArray(width * height * 4);
  const source = new Uint32Array(
    frame.data.buffer,
    frame.data.byteOffset,
    frame.width * frame.height,
  );
  const target = new Uint32Array(data.buffer);
  for (let row = 0; row < height; row++) {
    const line = mirrored(row - top, frame.height) * frame.width;
    for (let column = 0; column < width; column++) {
      const at = line + mirrored(column - left, frame.width);
      target[row * width + column] = source[at] as number;
    }
  }
  return { width, height, data };
}

/** An index outside of 0 … length − 1 as its mirror image inside. */
function mirrored(index: number, length: number): number {
  const inside = index < 0 ? -1 - index : index;
  return inside < length ? inside : 2 * length - 1 - inside;
}
