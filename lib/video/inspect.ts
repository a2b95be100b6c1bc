import { BlobSource, EncodedPacketSink, Input, MP4 } from 'mediabunny';
import { KinoraError } from '../contract';

/** Facts of a finished video, counted in the file itself. */
export interface VideoFacts {
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  /** Frames per second, from the frames' own times. */
  readonly frameRate: number;
  /** Full codec string, such as `avc1.640020`. */
  readonly codec: string;
  readonly durationSeconds: number;
  /** Whether the index comes before the frames, so that playing starts before the file is loaded. */
  readonly fastStart: boolean;
}

/**
 * Reads the facts of an MP4 without decoding it.
 *
 * @throws KinoraError `VIDEO_UNREADABLE` if it is no MP4, has no video, or is cut off
 */
export async function inspectVideo(file: Blob): Promise<VideoFacts> {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  try {
    const boxes = await topLevelBoxes(file);
    const track = await input.getPrimaryVideoTrack();
    if (!track) throw new Error('The file has no video track.');
    let frames = 0;
    let first = Number.POSITIVE_INFINITY;
    let last = Number.NEGATIVE_INFINITY;
    let end = Number.NEGATIVE_INFINITY;
    for await (const packet of new EncodedPacketSink(track).packets(undefined, undefined, {
      metadataOnly: true,
    })) {
      frames += 1;
      first = Math.min(first, packet.timestamp);
      last = Math.max(last, packet.timestamp);
      end = Math.max(end, packet.timestamp + packet.duration);
    }
    if (frames === 0) throw new Error('The file has no frames.');
    return {
      width: await track.getDisplayWidth(),
      height: await track.getDisplayHeight(),
      frames,
      frameRate: frames > 1 ? round((frames - 1) / (last - first)) : round(1 / (end - first)),
      codec: (await track.getCodecParameterString()) ?? 'unknown',
      durationSeconds: round(end - first),
      fastStart: boxes.indexOf('moov') >= 0 && boxes.indexOf('moov') < boxes.indexOf('mdat'),
    };
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new KinoraError('VIDEO_UNREADABLE', `This file is not a readable MP4: ${detail}`, {
      cause,
      remedy: 'Use a complete MP4 file.',
    });
  } finally {
    input.dispose();
  }
}

/**
 * Types of the outermost boxes in the order of the file (ISO/IEC 14496-12, 4.2).
 *
 * @throws Error if a box reaches beyond the end of the file
 */
async function topLevelBoxes(file: Blob): Promise<string[]> {
  const types: string[] = [];
  let at = 0;
  while (at + 8 <= file.size) {
    const bytes = await file.slice(at, at + 16).arrayBuffer();
    const view = new DataView(bytes);
    let size = view.getUint32(0);
    if (size === 1 && bytes.byteLength === 16) size = Number(view.getBigUint64(8));
    else if (size === 0) size = file.size - at;
    if (size < 8 || at + size > file.size) throw new Error('the file ends too early.');
    types.push(String.fromCharCode(...new Uint8Array(bytes, 4, 4)));
    at += size;
  }
  return types;
}

/** Removes the rounding errors of dividing by a time scale. */
function round(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
