import type { RunProgress } from '../../lib/predictions/run-state';

/** How far the present phase is, from 0 to 1; null where it cannot be told. */
export function phaseFraction(progress: RunProgress): number | null {
  const { phase, bytes, step, steps, clip, clips, frame, frames, tile } = progress;
  if (phase === 'load' && bytes && bytes.total > 0) return Math.min(1, bytes.done / bytes.total);
  if (phase === 'denoise' && steps > 0) return step / steps;
  if (phase !== 'decode') return null;
  if (tile) return (clip + (tile.tile - 1 + tile.frame / tile.frames) / tile.tiles) / clips;
  return frames > 0 ? frame / frames : null;
}

/** A clip's decode takes about as long as two steps (reference `wan22-ti2v-5b.md` §0.5). */
const decodeSteps = 2;

/** Percent of the whole run in whole numbers, by steps and decoded frames; null before the first. */
export function percentDone(progress: RunProgress): number | null {
  const { clip, clips, step, steps, phase } = progress;
  if (phase === null || phase === 'load') return null;
  const perClip = steps + decodeSteps;
  const decoding = phase === 'decode' || phase === 'finish';
  const ofClip = decoding ? steps + decodeSteps * decodedOfClip(progress) : step;
  return Math.min(99, Math.floor((100 * (clip * perClip + ofClip)) / (clips * perClip)));
}

/** Share of this clip that is decoded. */
function decodedOfClip(progress: RunProgress): number {
  if (progress.phase === 'finish') return 1;
  const share = (phaseFraction(progress) ?? 0) * progress.clips - progress.clip;
  return Math.min(1, Math.max(0, share));
}
