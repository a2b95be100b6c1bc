import {
  canEncodeVideo,
  Quality,
  VideoSample,
  VideoSampleSource,
  type VideoSource,
} from 'mediabunny';
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

/** Where the first parameter set of an AVCDecoderConfigurationRecord begins, after their number. */
const firstSet = 6;
/** Bits of the record that are reserved and set: before the size of lengths, and before the number of SPS. */
const reserved = [
  [4, 0b1111_1100],
  [5, 0b1110_0000],
] as const;

/**
 * Mends the decoder configuration of Firefox 153, in which the header byte of each parameter set stands twice
 * (SPS `67 67 64 …`, PPS `68 68 …`) and the reserved bits are 0: ffmpeg reads such a file with errors.
 *
 * @param record AVCDecoderConfigurationRecord (ISO/IEC 14496-15, 5.3.3.1)
 * @returns any other record as it is
 */
export function mendedConfiguration(record: Uint8Array): Uint8Array {
  const profile = record[1];
  // The header of an SPS is followed by the profile.
  const sps = record.subarray(firstSet + 2);
  if (sps[0] !== sps[1] || sps[1] === profile || sps[2] !== profile) return record;
  const mended = [...record.subarray(0, firstSet)];
  for (const [at, bits] of reserved) mended[at] = (record[at] ?? 0) | bits;
  let at = firstSet;
  const copySets = (count: number) => {
    for (let i = 0; i < count; i++) {
      const size = ((record[at] ?? 0) << 8) | (record[at + 1] ?? 0);
      const doubled = record[at + 2] === record[at + 3] ? 1 : 0;
      mended.push((size - doubled) >> 8, (size - doubled) & 0xff);
      mended.push(...record.subarray(at + 2 + doubled, at + 2 + size));
      at += 2 + size;
    }
  };
  copySets((record[5] ?? 0) & 0b1_1111);
  const pictureSets = record[at++] ?? 0;
  mended.push(pictureSets);
  copySets(pictureSets);
  return Uint8Array.from([...mended, ...record.subarray(at)]);
}
