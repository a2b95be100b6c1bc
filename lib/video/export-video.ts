import {
  BlobSource,
  BufferTarget,
  Conversion,
  canEncodeVideo,
  Input,
  type InputVideoTrack,
  MP4,
  Output,
  VideoSampleSink,
  WebMOutputFormat,
} from 'mediabunny';
import { KinoraError, toKinoraError } from '../contract';
import { inspectVideo } from './inspect';

/** What a video can be exported as besides MP4: a WebM as it is, or a GIF for pages that show pictures only. */
export const exportFormats = ['gif', 'webm'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** Limits of a GIF. It keeps time in hundredths of a second, so that 12.5 frames per second are exact. */
const gifLimits = { seconds: 5, side: 480, interval: 80 } as const;

interface ExportOptions {
  readonly signal: AbortSignal;
  /** @param share from 0 to 1 */
  readonly onProgress: (share: number) => void;
}

/** Size of a video in pixels. */
interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** Whether this browser can write a format. */
export async function canExport(format: ExportFormat, size: PixelSize): Promise<boolean> {
  return format === 'gif' || (await webmCodec(size)) !== null;
}

/**
 * Converts a finished video: a WebM of all frames in their size, or a GIF within {@link gifLimits} from its start on.
 * The file has no metadata about how the video was made.
 *
 * @throws KinoraError `VIDEO_UNREADABLE`; `ENCODER_FAILED` where the browser cannot write it; `CANCELLED` after an abort
 */
export async function exportVideo(
  file: Blob,
  format: ExportFormat,
  options: ExportOptions,
): Promise<Blob> {
  // It refuses an incomplete video.
  const { width, height } = await inspectVideo(file);
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    options.signal.throwIfAborted();
    const track = await input.getPrimaryVideoTrack();
    if (!track || !(await track.canDecode())) throw new KinoraError('VIDEO_UNREADABLE');
    return format === 'webm'
      ? new Blob([await writeWebm(input, { width, height }, options)], { type: 'video/webm' })
      : new Blob([await writeGif(track, { width, height }, options)], { type: 'image/gif' });
  } catch (thrown) {
    const error = toKinoraError(options.signal.aborted ? options.signal.reason : thrown);
    if (error.code !== 'INTERNAL') throw error;
    const detail = thrown instanceof Error ? thrown.message : String(thrown);
    throw new KinoraError('ENCODER_FAILED', `The video could not be exported: ${detail}.`, {
      remedy: 'Download it as MP4, or use Chrome or Edge.',
      cause: thrown,
    });
  } finally {
    input.dispose();
  }
}

async function writeGif(
  track: InputVideoTrack,
  full: PixelSize,
  { signal, onProgress }: ExportOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { seconds, side, interval } = gifLimits;
  const start = await track.getFirstTimestamp();
  const length = Math.min(seconds, (await track.computeDuration()) - start);
  const count = Math.max(1, Math.round((length * 1000) / interval));
  // A little later than a frame begins: times are rounded.
  const times = Array.from(
    { length: count },
    (_, index) => start + (index * interval) / 1000 + 1e-3,
  );
  const scale = Math.min(1, side / Math.max(full.width, full.height));
  const [width, height] = [Math.round(full.width * scale), Math.round(full.height * scale)];
  // An opaque canvas, which is kept on the CPU.
  const context = new OffscreenCanvas(width, height).getContext('2d', {
    alpha: false,
    willReadFrequently: true,
  });
  if (!context) throw new Error('the browser has no canvas');
  context.imageSmoothingQuality = 'high';
  const { GIFEncoder } = await import('gifenc');
  const gif = GIFEncoder();
  let done = 0;
  for await (const sample of new VideoSampleSink(track).samplesAtTimestamps(times)) {
    signal.throwIfAborted();
    if (!sample) throw new KinoraError('VIDEO_UNREADABLE', 'A frame of the video is missing.');
    sample.draw(context, 0, 0, width, height);
    sample.close();
    const { palette, indices } = toPalette(context.getImageData(0, 0, width, height).data, 256);
    gif.writeFrame(indices, width, height, { palette, delay: interval });
    done += 1;
    onProgress(done / count);
    // The page shows the progress, and takes a cancel.
    await new Promise((resolve) => setTimeout(resolve));
  }
  gif.finish();
  return gif.bytes();
}

async function webmCodec({ width, height }: PixelSize) {
  for (const codec of ['vp9', 'vp8'] as const) {
    if (await canEncodeVideo(codec, { width, height })) return codec;
  }
  return null;
}

async function writeWebm(
  input: Input,
  size: PixelSize,
  { signal, onProgress }: ExportOptions,
): Promise<ArrayBuffer> {
  const codec = await webmCodec(size);
  if (!codec) throw new Error('the browser encodes no video for it');
  const output = new Output({ format: new WebMOutputFormat(), target: new BufferTarget() });
  const conversion = await Conversion.init({ input, output, tags: {}, video: { codec } });
  conversion.onProgress = onProgress;
  const cancel = () => void conversion.cancel();
  signal.addEventListener('abort', cancel);
  try {
    await conversion.execute();
  } finally {
    signal.removeEventListener('abort', cancel);
  }
  if (!output.target.buffer) throw new Error('it gave no data');
  return output.target.buffer;
}

/** Pixels that share one colour: a part of `order` in {@link toPalette}. */
interface Cluster {
  readonly from: number;
  readonly to: number;
  /** Red, green and blue. */
  readonly mean: readonly number[];
  /** The one of them that differs most, and the sum of its squared differences to the mean. */
  readonly channel: number;
  readonly error: number;
}

/**
 * An image in few colours. The cluster of which a channel differs most is divided at the mean of that channel, until
 * there are enough (Wan, Wong and Prusinkiewicz, "An algorithm for multidimensional data clustering", 1988); pixels
 * take the mean of theirs. All 8 bits of a channel count, so that gradients stay smooth.
 *
 * @param rgba four bytes each; A is ignored
 * @param most colours, at most 256
 */
export function toPalette(rgba: Uint8ClampedArray, most: number) {
  const order = Uint32Array.from({ length: rgba.length / 4 }, (_, pixel) => 4 * pixel);
  const clusters = [measure(rgba, order, 0, order.length)];
  while (clusters.length < most) {
    const worst = clusters.reduce((a, b) => (b.error > a.error ? b : a));
    const { from, to, mean, channel } = worst;
    const limit = mean[channel] as number;
    let middle = from;
    for (let at = from; at < to; at += 1) {
      const pixel = order[at] as number;
      if ((rgba[pixel + channel] as number) > limit) continue;
      order[at] = order[middle] as number;
      order[middle] = pixel;
      middle += 1;
    }
    // All pixels have the same colour, but for rounding.
    if (middle === from || middle === to) break;
    clusters[clusters.indexOf(worst)] = measure(rgba, order, from, middle);
    clusters.push(measure(rgba, order, middle, to));
  }
  const indices = new Uint8Array(order.length);
  for (const [index, { from, to }] of clusters.entries()) {
    for (const pixel of order.subarray(from, to)) indices[pixel / 4] = index;
  }
  return { palette: clusters.map(({ mean }) => mean.map(Math.round)), indices };
}

function measure(rgba: Uint8ClampedArray, order: Uint32Array, from: number, to: number): Cluster {
  const pixels = order.subarray(from, to);
  const channels = [0, 1, 2].map((channel) => {
    let [sum, squares] = [0, 0];
    for (const pixel of pixels) {
      const value = rgba[pixel + channel] as number;
      sum += value;
      squares += value * value;
    }
    return { mean: sum / pixels.length, error: squares - sum ** 2 / pixels.length };
  });
  const errors = channels.map(({ error }) => error);
  const error = Math.max(...errors);
  const mean = channels.map((channel) => channel.mean);
  return { from, to, mean, channel: errors.indexOf(error), error };
}
