import { BufferTarget, Mp4OutputFormat, Output } from 'mediabunny';
import { appUrl, KinoraError } from '../contract';
import { FfmpegEncoder } from './ffmpeg-encoder';
import { type FrameEncoder, isEncoderSupported, WebCodecsEncoder } from './webcodecs-encoder';
import { i420Bytes } from './yuv';

/** Format of a written video. */
export interface VideoWriterOptions {
  /** In pixels, even. */
  readonly width: number;
  /** In pixels, even. */
  readonly height: number;
  /** Frames per second. */
  readonly frameRate: number;
  /** Number of frames. */
  readonly frames: number;
  /** `auto` takes WebCodecs where the browser can encode H.264 in this size, else ffmpeg. */
  readonly encoder?: 'auto' | 'webcodecs' | 'ffmpeg';
  /** Address of the files of ffmpeg; `/ffmpeg/` of this origin by default. */
  readonly ffmpegBase?: string;
}

/** Encodes frames into an MP4. After any failure all its resources are free. */
export interface VideoWriter {
  /** The encoder in use. */
  readonly encoder: 'webcodecs' | 'ffmpeg';
  /**
   * Adds the next frame. Await it before the next call: it resolves when the encoder can take another frame.
   * The planes are read before it returns, so that the buffer may be reused.
   *
   * @param planes I420 in BT.709, limited range, as {@link I420Scaler} makes them
   * @throws KinoraError `ENCODER_FAILED` or, after {@link cancel}, `CANCELLED`
   */
  add(planes: Uint8Array): Promise<void>;
  /**
   * Completes the video: H.264 in an MP4 with its index in front, and without tags.
   *
   * @param frames number of frames; fewer than announced where a run was finished early
   * @throws KinoraError `ENCODER_FAILED`, also if another number of frames was added
   */
  finish(frames?: number): Promise<Blob>;
  /** Cancels the video and frees everything; does nothing after the end. */
  cancel(): Promise<void>;
}

/**
 * Starts a video.
 *
 * @throws TypeError for sizes that are not positive and even, or counts that are not positive
 * @throws KinoraError `ENCODER_FAILED` if the wanted encoder is not there or cannot start
 */
export async function createVideoWriter(options: VideoWriterOptions): Promise<VideoWriter> {
  const { width, height, frameRate, frames } = options;
  for (const size of [width, height]) {
    if (!Number.isInteger(size) || size < 2 || size % 2 !== 0) {
      throw new TypeError(`A video of ${width}×${height}: both sizes must be positive and even.`);
    }
  }
  if (!(frameRate > 0)) throw new TypeError(`A frame rate of ${frameRate}.`);
  if (!Number.isInteger(frames) || frames < 1) throw new TypeError(`A video of ${frames} frames.`);

  const encoder = await startEncoder(options);
  const output = new Output({
    format: new Mp4OutputFormat({ fastStart: 'in-memory' }),
    target: new BufferTarget(),
  });
  try {
    output.addVideoTrack(encoder.source, { frameRate });
    await output.start();
  } catch (thrown) {
    encoder.close();
    throw encoderError(thrown);
  }
  return new Mp4Writer(options, encoder, output);
}

async function startEncoder(options: VideoWriterOptions): Promise<FrameEncoder> {
  const choice = options.encoder ?? 'auto';
  if (choice !== 'ffmpeg') {
    if (await isEncoderSupported(options)) return new WebCodecsEncoder(options);
    if (choice === 'webcodecs') {
      throw new KinoraError(
        'ENCODER_FAILED',
        `This browser cannot encode H.264 at ${options.width}×${options.height}.`,
        { remedy: 'Use Chrome, Edge, Firefox or Safari, or the ffmpeg encoder.' },
      );
    }
  }
  const base = options.ffmpegBase ?? appUrl('/ffmpeg/').href;
  try {
    return await FfmpegEncoder.load(options, base);
  } catch (cause) {
    throw new KinoraError('ENCODER_FAILED', `ffmpeg could not be started: ${messageOf(cause)}`, {
      cause,
      remedy: 'Check the connection and run it again.',
    });
  }
}

/** The muxer behind both encoders: it writes index and colours. */
class Mp4Writer implements VideoWriter {
  readonly #options: VideoWriterOptions;
  readonly #encoder: FrameEncoder;
  readonly #output: Output<Mp4OutputFormat, BufferTarget>;
  #frames = 0;
  /** Why no more frames are accepted; null before the end. */
  #ended: KinoraError | null = null;

  constructor(
    options: VideoWriterOptions,
    encoder: FrameEncoder,
    output: Output<Mp4OutputFormat, BufferTarget>,
  ) {
    this.#options = options;
    this.#encoder = encoder;
    this.#output = output;
  }

  get encoder(): 'webcodecs' | 'ffmpeg' {
    return this.#encoder.name;
  }

  async add(planes: Uint8Array): Promise<void> {
    const { width, height, frames } = this.#options;
    const bytes = i420Bytes(width, height);
    if (planes.length !== bytes) {
      throw new TypeError(`The frame has ${planes.length} bytes, not ${bytes}.`);
    }
    await this.#guard(async () => {
      if (this.#frames === frames) throw new Error(`there are more than ${frames} frames`);
      this.#frames += 1;
      await this.#encoder.add(planes);
    });
  }

  async finish(frames = this.#options.frames): Promise<Blob> {
    return this.#guard(async () => {
      if (this.#frames !== frames) {
        throw new Error(`it got ${this.#frames} of ${frames} frames`);
      }
      await this.#encoder.flush();
      await this.#output.finalize();
      // An encoder may drop frames when it is too slow; the video would then play too fast.
      if (this.#encoder.packets !== frames) {
        throw new Error(`it wrote ${this.#encoder.packets} of ${frames} frames`);
      }
      const { buffer } = this.#output.target;
      if (!buffer) throw new Error('it gave no data');
      this.#encoder.close();
      this.#ended = new KinoraError('ENCODER_FAILED', 'The video is finished already.');
      return new Blob([buffer], { type: 'video/mp4' });
    });
  }

  async cancel(): Promise<void> {
    if (this.#ended) return;
    await this.#end(new KinoraError('CANCELLED'));
  }

  /** Runs one step; a failure ends the video and frees it. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    if (this.#ended) throw this.#ended;
    try {
      return await work();
    } catch (thrown) {
      if (!this.#ended) await this.#end(encoderError(thrown));
      throw this.#ended ?? encoderError(thrown);
    }
  }

  async #end(reason: KinoraError): Promise<void> {
    this.#ended = reason;
    this.#encoder.close();
    // The first error is the reason; cancelling a broken output may fail as well.
    await this.#output.cancel().catch(() => {});
  }
}

function encoderError(thrown: unknown): KinoraError {
  if (thrown instanceof KinoraError) return thrown;
  const sentence = `The video encoder failed: ${messageOf(thrown)}`;
  return new KinoraError('ENCODER_FAILED', sentence.replace(/[.\s]*$/, '.'), { cause: thrown });
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
