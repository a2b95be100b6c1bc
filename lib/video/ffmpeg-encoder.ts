import type { FFmpeg } from '@ffmpeg/ffmpeg';
import {
  BufferSource,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  MP4,
  type VideoSource,
} from 'mediabunny';
import { sameBytes, toBytes } from './bytes';
import type { Format, FrameEncoder } from './webcodecs-encoder';
import { bt709, i420Bytes } from './yuv';

/**
 * Frames per segment. ffmpeg in the browser reads and writes whole files, so that a video is encoded in
 * segments: 24 frames of 720p are 33 MB, a whole clip would be 170 MB. A segment begins with a key frame.
 */
const segmentFrames = 24;
/** Lines of ffmpeg's log in an error message. */
const keptLogLines = 4;

/**
 * x264 in WebAssembly, for browsers that cannot encode H.264 themselves. It is slow. Segments are encoded
 * with equal settings, hence have one decoder configuration, and their packets follow one another in one
 * MP4. While a segment is encoded the next one is filled.
 */
export class FfmpegEncoder implements FrameEncoder {
  readonly name = 'ffmpeg';
  readonly #source = new EncodedVideoPacketSource('avc');
  readonly #ffmpeg: FFmpeg;
  readonly #format: Format;
  readonly #log: string[] = [];
  /** Planes of the frames of the next segment. */
  #segment: Uint8Array<ArrayBuffer> | null = null;
  #waiting = 0;
  /** The segment that is being encoded. */
  #encoding: Promise<void> = Promise.resolve();
  #description: Uint8Array | null = null;
  #packets = 0;

  /**
   * Loads ffmpeg from `base`, a folder with the module files of @ffmpeg/ffmpeg and @ffmpeg/core.
   * No bundler processes them: a bundled class does not find its worker, and a bundled worker cannot import
   * the core from a URL.
   */
  static async load(format: Format, base: string): Promise<FfmpegEncoder> {
    const file = (name: string) => new URL(name, base).href;
    const url = file('index.js');
    const module: typeof import('@ffmpeg/ffmpeg') = await import(
      /* @vite-ignore */ /* webpackIgnore: true */ /* turbopackIgnore: true */ url
    );
    const ffmpeg = new module.FFmpeg();
    try {
      await ffmpeg.load({ coreURL: file('ffmpeg-core.js'), wasmURL: file('ffmpeg-core.wasm') });
    } catch (thrown) {
      ffmpeg.terminate();
      throw thrown;
    }
    return new FfmpegEncoder(ffmpeg, format);
  }

  private constructor(ffmpeg: FFmpeg, format: Format) {
    this.#ffmpeg = ffmpeg;
    this.#format = format;
    ffmpeg.on('log', ({ message }) => {
      this.#log.push(message);
      if (this.#log.length > keptLogLines) this.#log.shift();
    });
  }

  get source(): VideoSource {
    return this.#source;
  }

  get packets(): number {
    return this.#packets;
  }

  async add(planes: Uint8Array): Promise<void> {
    const { width, height } = this.#format;
    const bytes = i420Bytes(width, height);
    this.#segment ??= new Uint8Array(segmentFrames * bytes);
    this.#segment.set(planes, this.#waiting * bytes);
    this.#waiting += 1;
    if (this.#waiting === segmentFrames) await this.#encodeWaiting();
  }

  async flush(): Promise<void> {
    if (this.#waiting > 0) await this.#encodeWaiting();
    await this.#encoding;
  }

  close(): void {
    this.#segment = null;
    this.#ffmpeg.terminate();
  }

  /** Waits for the segment that is being encoded, then starts the next one. */
  async #encodeWaiting(): Promise<void> {
    const count = this.#waiting;
    const segment = this.#segment;
    this.#waiting = 0;
    this.#segment = null;
    if (!segment) return;
    const bytes = count * i420Bytes(this.#format.width, this.#format.height);
    await this.#encoding;
    this.#encoding = this.#encode(count < segmentFrames ? segment.slice(0, bytes) : segment, count);
    // The next await of this promise handles a failure; until then it must not count as unhandled.
    this.#encoding.catch(() => {});
  }

  async #encode(planes: Uint8Array<ArrayBuffer>, count: number): Promise<void> {
    await this.#ffmpeg.writeFile('in.yuv', planes);
    const status = await this.#ffmpeg.exec(x264Arguments(this.#format));
    if (status !== 0) throw new Error(this.#log.join(' · ') || `ffmpeg ended with ${status}`);
    const mp4 = await this.#ffmpeg.readFile('out.mp4');
    await this.#ffmpeg.deleteFile('in.yuv');
    await this.#ffmpeg.deleteFile('out.mp4');
    if (typeof mp4 === 'string') throw new TypeError('ffmpeg gave text for a video.');
    const first = this.#packets;
    await this.#append(mp4);
    const written = this.#packets - first;
    if (written !== count) throw new Error(`ffmpeg wrote ${written} of ${count} frames`);
  }

  /** Adds a segment's packets to the muxer with their times in the whole video. */
  async #append(mp4: Uint8Array): Promise<void> {
    const { frameRate } = this.#format;
    const input = new Input({ source: new BufferSource(mp4), formats: [MP4] });
    try {
      const track = await input.getPrimaryVideoTrack();
      const config = await track?.getDecoderConfig();
      if (!track || !config?.description) throw new Error('ffmpeg gave no video');
      const description = toBytes(config.description);
      this.#description ??= description.slice();
      if (!sameBytes(this.#description, description)) {
        throw new Error('two segments of the video need different decoders');
      }
      const meta = { decoderConfig: { ...config, colorSpace: bt709 } };
      for await (const packet of new EncodedPacketSink(track).packets()) {
        const timing = { timestamp: this.#packets / frameRate, duration: 1 / frameRate };
        await this.#source.add(packet.clone(timing), meta);
        this.#packets += 1;
      }
    } finally {
      input.dispose();
    }
  }
}

/** Raw planes of a segment → H.264; without B-frames packets come in the order of the frames. */
function x264Arguments({ width, height, frameRate }: Format): string[] {
  return [
    ...['-f', 'rawvideo', '-pix_fmt', 'yuv420p', '-s', `${width}x${height}`, '-r', `${frameRate}`],
    ...['-i', 'in.yuv'],
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '18', '-bf', '0'],
    ...['-color_primaries', 'bt709', '-color_trc', 'bt709', '-colorspace', 'bt709'],
    ...['-color_range', 'tv', 'out.mp4'],
  ];
}
