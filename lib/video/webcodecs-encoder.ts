import {
  canEncodeVideo,
  Quality,
  VideoSample,
  VideoSampleSource,
  type VideoSource,
} from 'mediabunny';
import { mendedConfiguration } from './avc-configuration';
import { avcCodec, bitRateOf, type Format } from './bit-rate';
import { toBytes } from './bytes';
import { bt709 } from './yuv';

export type { Format } from './bit-rate';

/** What the writer needs of an encoder: frames in I420 (BT.709) in, H.264 packets into `source`. */
export interface FrameEncoder {
  readonly name: 'webcodecs' | 'ffmpeg';
  /** The encoded packets. */
  readonly source: VideoSource;
  /** Packets written so far. */
  readonly packets: number;
  /** Reads the planes before it returns; resolves when more can be taken. */
  add(planes: Uint8Array): Promise<void>;
  /** Encodes frames that are still buffered, unless the muxer does that. */
  flush(): Promise<void>;
  /** Frees what the muxer does not free; may be called more than once. */
  close(): void;
}

/** Seconds between key frames: how finely a player can seek. */
const keyFrameInterval = 2;

function encoding(format: Format) {
  const fullCodecString = avcCodec(format);
  return {
    // The library's own choice does not know the frame rate.
    ...(fullCodecString && { fullCodecString }),
    quality: new Quality({ bitrate: bitRateOf(format), bitrateMode: 'variable' }),
    hardwareAcceleration: 'no-preference',
    latencyMode: 'quality', // the other mode may drop frames
  } as const;
}

/** Whether this browser can encode H.264 in this size. */
export async function isEncoderSupported(format: Format): Promise<boolean> {
  const { width, height, frameRate } = format;
  return canEncodeVideo('avc', { width, height, frameRate, ...encoding(format) });
}

/** Encodes frames as every video of Kinora is; they have to be in BT.709 already. */
export function createH264Source(format: Format, onPacket: () => void): VideoSampleSource {
  return new VideoSampleSource({
    codec: 'avc',
    keyFrameInterval,
    ...encoding(format),
    onEncodedPacket: (_packet, meta) => {
      onPacket();
      // Not every browser reports the colour space; it is that of the frames.
      const config = meta?.decoderConfig;
      if (!config) return;
      config.colorSpace = bt709;
      if (config.description) config.description = mendedConfiguration(toBytes(config.description));
    },
  });
}

/** The browser's own encoder, on the GPU's video unit or in software. */
export class WebCodecsEncoder implements FrameEncoder {
  readonly name = 'webcodecs';
  readonly source: VideoSampleSource;
  packets = 0;
  readonly #format: Format;
  #frames = 0;

  constructor(format: Format) {
    this.#format = format;
    this.source = createH264Source(format, () => {
      this.packets += 1;
    });
  }

  async add(planes: Uint8Array): Promise<void> {
    const { width, height, frameRate } = this.#format;
    const index = this.#frames++;
    // The VideoFrame copies the planes, which are filled again for the next frame.
    const videoFrame = new VideoFrame(planes, {
      format: 'I420',
      codedWidth: width,
      codedHeight: height,
      timestamp: Math.round((index * 1e6) / frameRate),
      colorSpace: bt709,
    });
    // The exact time: whole microseconds would not give an even 24 frames per second.
    const sample = new VideoSample(videoFrame, {
      timestamp: index / frameRate,
      duration: 1 / frameRate,
    });
    try {
      await this.source.add(sample);
    } finally {
      sample.close();
    }
  }

  async flush(): Promise<void> {}

  close(): void {}
}
