import type { ModelManifest } from '../contract';
import { latentFrames } from './latents';

/** One clip of a video: what a single run of the model makes. */
export interface Clip {
  /** Frames that the model makes. */
  readonly frames: number;
  /** Latent frames at its start that are those at the end of the clip before; 0 in the first clip. */
  readonly shared: number;
  /** Frame of the video that is its last one. */
  readonly last: number;
}

/** How the clips of a video go on from one another. */
export interface ClipJoin {
  /** Whether they hold the last latent frames of the clip before, and are decoded with it; else its last picture. */
  readonly keepsMotion: boolean;
  /** Latent frames that both have, from 1 on; 1 where a picture is held. */
  readonly shared: number;
  /** Whether the first clip holds those of an earlier video, whose last frame is its own first one. */
  readonly fromFirst?: boolean;
}

/**
 * The number of last latent frames that are kept of a video: another video holds them, and the decoder needs this
 * much of the past. After five the bundled model's last frame differs by a seventh of a step of its video (README).
 */
export const keptLatents = 5;

/**
 * How the clips of a run go on: as the model's manifest says.
 *
 * @param before latent frames of an earlier video that the first clip goes on from: then the motion is kept
 */
export function joinOf({ continuation }: ModelManifest, before = 0): ClipJoin {
  const fromFirst = before > 0;
  const { latents } = continuation;
  const keepsMotion = latents > 0 && (continuation.keepsMotion || fromFirst);
  const shared = keepsMotion ? Math.min(latents, fromFirst ? before : latents) : 1;
  return { keepsMotion, shared, fromFirst };
}

/**
 * Splits a video into clips that the model can make in one go. Each adds as many frames to the one before as the longest
 * clip adds to its first frame; what it shares with it beyond that frame comes on top.
 *
 * @param frames frames of the video, one more than a multiple of the stride
 * @param maxClipFrames longest clip of the model, one more than a multiple of the stride, more than one
 * @param stride frames per latent frame
 * @throws RangeError for another number of frames
 */
export function planClips(
  frames: number,
  maxClipFrames: number,
  stride: number,
  { shared, fromFirst = false }: Omit<ClipJoin, 'keepsMotion'> = { shared: 1 },
): Clip[] {
  latentFrames(frames, stride);
  if (latentFrames(maxClipFrames, stride) < 2) {
    throw new RangeError('A clip of one frame cannot continue a video.');
  }
  const clips: Clip[] = [];
  let last = 0;
  do {
    // All terms but the one are multiples of the stride.
    const added = Math.min(frames - 1 - last, maxClipFrames - 1);
    last += added;
    const goesOn = fromFirst || clips.length > 0;
    const further = goesOn ? (shared - 1) * stride : 0;
    clips.push({ frames: 1 + further + added, shared: goesOn ? shared : 0, last });
  } while (last < frames - 1);
  return clips;
}
