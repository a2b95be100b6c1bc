import {
  BlobSource,
  BufferTarget,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  type InputVideoTrack,
  MP4,
  Mp4OutputFormat,
  Output,
  VideoSampleSink,
  type VideoSource,
} from 'mediabunny';
import { KinoraError, toKinoraError } from '../contract';
import { sameBytes, toBytes } from './bytes';
import { inspectVideo, type VideoFacts } from './inspect';
import { createH264Source, isEncoderSupported } from './webcodecs-encoder';

/** Frames of a video file. */
export interface VideoPiece {
  readonly file: Blob;
  /** The first frame, from 0. */
  readonly from: number;
  /** The frame after the last one. */
  readonly to: number;
}

/** A video of pieces of others. */
export interface CutVideo {
  readonly video: Blob;
  /** Whether the frames are the originals; otherwise they were encoded again. */
  readonly copied: boolean;
}

/**
 * The pieces of videos of which each one starts from the last frame of the one before. That frame is in
 * both; it is left out where it is the last one, since a video can lose its last frame without being encoded
 * again, but not its first one.
 *
 * @param parts number of frames of each video
 * @param from first frame of the joined video, from 0
 * @param to frame after the last one
 * @returns for each part its frames; those of a part that is not in the range are absent
 */
export function piecesOf<T extends { readonly frames: number }>(
  parts: readonly T[],
  from: number,
  to: number,
): { part: T; from: number; to: number }[] {
  let start = 0;
  return parts.flatMap((part, index) => {
    const length = part.frames - (index < parts.length - 1 ? 1 : 0);
    const piece = { part, from: Math.max(0, from - start), to: Math.min(length, to - start) };
    start += length;
    return piece.from < piece.to ? [piece] : [];
  });
}

/** Frames of videos that are joined as {@link piecesOf} does. */
export function joinedFrames(parts: readonly { readonly frames: number }[]): number {
  return parts.reduce((sum, { frames }) => sum + frames, 0) - Math.max(0, parts.length - 1);
}

/** Frames at which a video can be cut without encoding its frames again. */
export interface CutPoints {
  /** Frames, from 0. */
  readonly keyFrames: ReadonlySet<number>;
  /** Whether its frames are stored in the order in which they are shown. */
  readonly inOrder: boolean;
  /** Configuration of the decoder. */
  readonly description: Uint8Array;
}

/** Reads where a video can be cut. @throws KinoraError `VIDEO_UNREADABLE` */
export async function readCutPoints(file: Blob): Promise<CutPoints> {
  const { input, points } = await openPiece({ file, from: 0, to: 1 });
  input.dispose();
  return points;
}

/**
 * Why {@link cutVideo} has to encode the frames of these pieces again; null where it copies them.
 *
 * @returns `order` where frames are stored in another order than they are shown (B-frames), `configuration` where
 *   the videos need different decoders, `start` where a piece does not start at a key frame
 */
export function encodingReason(
  pieces: readonly { readonly points: CutPoints; readonly from: number }[],
): 'order' | 'configuration' | 'start' | null {
  const first = pieces[0]?.points.description;
  if (pieces.some(({ points }) => !points.inOrder)) return 'order';
  if (first && pieces.some(({ points }) => !sameBytes(points.description, first))) {
    return 'configuration';
  }
  return pieces.some(({ points, from }) => !points.keyFrames.has(from)) ? 'start' : null;
}

/**
 * Writes frames of one or more videos as one MP4 without tags. They are copied where each piece starts with a key frame
 * and all have the same decoder configuration; otherwise all are encoded again.
 *
 * @param pieces of videos with the same size and frame rate
 * @throws KinoraError `VIDEO_UNREADABLE`, also for videos that cannot be joined; `ENCODER_FAILED` where they
 *   have to be encoded and the browser cannot; `CANCELLED` after an abort
 */
export async function cutVideo(
  pieces: readonly VideoPiece[],
  options: {
    readonly signal?: AbortSignal;
    /** Frames that are written so far. */
    readonly onFrame?: (frames: number) => void;
  },
): Promise<CutVideo> {
  const opened: OpenPiece[] = [];
  const output = new Output({
    format: new Mp4OutputFormat({ fastStart: 'in-memory' }),
    target: new BufferTarget(),
  });
  try {
    for (const piece of pieces) opened.push(await openPiece(piece));
    const [first] = opened;
    if (!first) throw new TypeError('A video of no pieces.');
    const { width, height, frameRate } = first.facts;
    const format = { width, height, frameRate };
    if (opened.some(({ facts }) => !isSameFormat(facts, format))) {
      throw new KinoraError('VIDEO_UNREADABLE', 'The videos differ in size or frame rate.', {
        remedy: 'Join videos of the same size.',
      });
    }
    const copied = encodingReason(opened) === null;
    const writer = copied ? copyingWriter() : await encodingWriter(format);
    output.addVideoTrack(writer.source, { frameRate });
    await output.start();
    let frames = 0;
    const next = () => {
      options.signal?.throwIfAborted();
      options.onFrame?.(frames + 1);
      return { timestamp: frames++ / frameRate, duration: 1 / frameRate };
    };
    for (const piece of opened) await writer.write(piece, next);
    await output.finalize();
    const { buffer } = output.target;
    if (!buffer) throw new Error('it gave no data');
    const video = new Blob([buffer], { type: 'video/mp4' });
    const written = (await inspectVideo(video)).frames;
    if (written !== frames) throw new Error(`it wrote ${written} of ${frames} frames`);
    return { video, copied };
  } catch (thrown) {
    // The first error of the output is the reason.
    await output.cancel().catch(() => {});
    const error = toKinoraError(thrown);
    if (error.code !== 'INTERNAL') throw error;
    const detail = thrown instanceof Error ? thrown.message : String(thrown);
    throw new KinoraError('ENCODER_FAILED', `The video could not be written: ${detail}.`, {
      cause: thrown,
    });
  } finally {
    for (const { input } of opened) input.dispose();
  }
}

interface OpenPiece extends VideoPiece {
  readonly input: Input;
  readonly track: InputVideoTrack;
  readonly facts: VideoFacts;
  readonly decoderConfig: VideoDecoderConfig;
  readonly points: CutPoints;
}

async function openPiece(piece: VideoPiece): Promise<OpenPiece> {
  const { file, from, to } = piece;
  const facts = await inspectVideo(file);
  if (!(from >= 0 && from < to && to <= facts.frames)) {
    throw new TypeError(`Frames ${from} to ${to} of a video of ${facts.frames} frames.`);
  }
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  const track = await input.getPrimaryVideoTrack();
  const decoderConfig = await track?.getDecoderConfig();
  if (!track || !decoderConfig?.description) {
    input.dispose();
    throw new KinoraError('VIDEO_UNREADABLE');
  }
  const points = await cutPoints(track, decoderConfig.description);
  return { ...piece, input, track, facts, decoderConfig, points };
}

async function cutPoints(
  track: InputVideoTrack,
  description: AllowSharedBufferSource,
): Promise<CutPoints> {
  const keyFrames = new Set<number>();
  let index = 0;
  let inOrder = true;
  let last = Number.NEGATIVE_INFINITY;
  const sink = new EncodedPacketSink(track);
  for await (const packet of sink.packets(undefined, undefined, { metadataOnly: true })) {
    if (packet.type === 'key') keyFrames.add(index);
    if (packet.timestamp < last) inOrder = false;
    last = packet.timestamp;
    index += 1;
  }
  return { keyFrames, inOrder, description: toBytes(description).slice() };
}

type Format = Pick<VideoFacts, 'width' | 'height' | 'frameRate'>;

function isSameFormat(a: Format, b: Format): boolean {
  return a.width === b.width && a.height === b.height && a.frameRate === b.frameRate;
}

/** Adds a piece to the output; `next` gives the time of its next frame. */
interface PieceWriter {
  readonly source: VideoSource;
  write(piece: OpenPiece, next: () => { timestamp: number; duration: number }): Promise<void>;
}

function copyingWriter(): PieceWriter {
  const source = new EncodedVideoPacketSource('avc');
  return {
    source,
    write: async ({ track, decoderConfig, from, to }, next) => {
      let index = 0;
      for await (const packet of new EncodedPacketSink(track).packets()) {
        if (index >= to) break;
        if (index >= from) await source.add(packet.clone(next()), { decoderConfig });
        index += 1;
      }
    },
  };
}

/** The frames go from decoder to encoder as they are: no conversion of colours. */
async function encodingWriter(format: Format): Promise<PieceWriter> {
  if (!(await isEncoderSupported(format))) {
    throw new KinoraError(
      'ENCODER_FAILED',
      'This browser cannot encode H.264, which a cut at this frame needs.',
      { remedy: 'Cut at a whole 2 seconds from the start of a video, or use Chrome or Edge.' },
    );
  }
  const source = createH264Source(format, () => {});
  return {
    source,
    write: async ({ track, facts, from, to }, next) => {
      const start = await track.getFirstTimestamp();
      // The middle of a frame is inside of it however its time was rounded.
      const timeOf = (frame: number) => start + (frame + 0.5) / facts.frameRate;
      for await (const sample of new VideoSampleSink(track).samples(timeOf(from), timeOf(to - 1))) {
        try {
          const { timestamp, duration } = next();
          sample.setTimestamp(timestamp);
          sample.setDuration(duration);
          await source.add(sample);
        } finally {
          sample.close();
        }
      }
    },
  };
}
