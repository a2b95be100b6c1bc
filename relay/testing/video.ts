import {
  BufferTarget,
  EncodedPacket,
  EncodedVideoPacketSource,
  type MetadataTags,
  Mp4OutputFormat,
  Output,
} from 'mediabunny';
import { codecString, decoderConfiguration, filler, keyPicture, repeatedPicture } from './h264';

/** What a test's video is like. */
export interface TestVideo {
  /** In pixels, even. Default 1280. */
  readonly width?: number;
  /** In pixels, even. Default 720. */
  readonly height?: number;
  /** Default 121, the frames of 5 seconds. */
  readonly frames?: number;
  /** Frames per second. Default 24. */
  readonly fps?: number;
  /** A second video track, for tests of refusals. */
  readonly tracks?: 1 | 2;
  /** Text beside the first picture, so that otherwise equal videos differ in their bytes. */
  readonly title?: string;
  /** For tests of refusals: stored videos have none. */
  readonly tags?: MetadataTags;
  /** Whether the index is in front. Default true. */
  readonly fastStart?: boolean;
}

/**
 * A real MP4 made without an encoder: grey, a few kilobytes, playable, with its index in front.
 *
 * @returns the file
 */
export async function makeVideo(options: TestVideo = {}): Promise<Uint8Array<ArrayBuffer>> {
  const { width = 1280, height = 720, frames = 121, fps = 24, tracks = 1 } = options;
  const { title = '', tags, fastStart = true } = options;
  const target = new BufferTarget();
  const output = new Output({
    format: new Mp4OutputFormat({ fastStart: fastStart && 'in-memory' }),
    target,
  });
  const sources = Array.from({ length: tracks }, () => new EncodedVideoPacketSource('avc'));
  for (const source of sources) output.addVideoTrack(source, { frameRate: fps });
  if (tags) output.setMetadataTags(tags);
  await output.start();
  const decoderConfig = {
    codec: codecString,
    codedWidth: width,
    codedHeight: height,
    description: decoderConfiguration(width, height),
  };
  for (const source of sources) {
    for (let frame = 0; frame < frames; frame += 1) {
      const bytes =
        frame === 0
          ? Buffer.concat([filler(title), keyPicture(width, height)])
          : repeatedPicture(width, height, frame);
      const type = frame === 0 ? 'key' : 'delta';
      const packet = new EncodedPacket(bytes, type, frame / fps, 1 / fps);
      await source.add(packet, { decoderConfig });
    }
  }
  await output.finalize();
  if (!target.buffer) throw new Error('The video was not finished.');
  return new Uint8Array(target.buffer);
}
