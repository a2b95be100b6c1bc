import { openAsBlob } from 'node:fs';
import { KinoraError } from '../../../lib/contract';
import { formatOfFile, mostFramesPerSecond } from '../../../lib/contract/request';
import { ApiError, type PredictionInput } from '../../../lib/contract/v3';
import type { VideoFacts } from '../../../lib/video/inspect';
import { followSamples } from '../../../lib/video/samples';

/** What a video is compared with. */
export type Asked = Pick<PredictionInput, 'size' | 'duration' | 'upscale' | 'smooth'>;

/** Tolerance of a result's length. */
const toleranceSeconds = 0.5;

/**
 * Checks that a file is the requested video: an MP4 with one H.264 track, width and height
 * exactly, at the model's own frame rate, length within half a second, and every sample inside the file.
 *
 * @throws ApiError `OUTPUT_REJECTED` with what is wrong
 */
export async function checkVideo(file: string, asked: Asked): Promise<VideoFacts> {
  const blob = await openAsBlob(file);
  const { width, height, frameRate } = formatOfFile(asked, mostFramesPerSecond);
  const mostFrames = 1 + (asked.duration + toleranceSeconds) * frameRate;
  let samples: number;
  let facts: VideoFacts;
  try {
    samples = (await followSamples(blob, mostFrames)).samples;
    // Loaded with the first video: the MP4 reader would cost a start 0.2 s.
    const { inspectVideo } = await import('../../../lib/video/inspect');
    facts = await inspectVideo(blob);
  } catch (thrown) {
    if (thrown instanceof KinoraError) throw rejected(thrown.message, thrown);
    if (!(thrown instanceof Error)) throw thrown;
    throw rejected(`This is not a readable MP4: ${thrown.message}.`, thrown);
  }
  if (facts.width !== width || facts.height !== height) {
    throw rejected(`It is ${facts.width}×${facts.height} and not ${width}×${height}.`);
  }
  if (facts.frames !== samples) throw rejected('Its samples do not each have a time.');
  const seconds = asked.duration + 1 / facts.frameRate;
  if (!(Math.abs(facts.durationSeconds - seconds) <= toleranceSeconds)) {
    throw rejected(`It lasts ${facts.durationSeconds} s and not ${seconds.toFixed(2)} s.`);
  }
  return facts;
}

function rejected(sentence: string, cause?: unknown): ApiError {
  return new ApiError('OUTPUT_REJECTED', sentence, cause === undefined ? {} : { cause });
}
