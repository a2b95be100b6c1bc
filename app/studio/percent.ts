import type { RunProgress } from '../../lib/predictions/run-state';

/** How far the present phase is, from 0 to 1; null where it cannot be told. */
export function phaseFraction(progress: RunProgress): number | null {
  const { phase, bytes, step, steps, frame, frames } = progress;
  if (phase === 'load' && bytes && bytes.total > 0) return Math.min(1, bytes.done / bytes.total);
  if (phase === 'denoise' && steps > 0) return step / steps;
  if (phase === 'decode' && frames > 0) return frame / frames;
  return null;
}

/**
 * Percent of the whole run in whole numbers, by denoising steps, which are nearly all of the work;
 * null before the first.
 */
export function percentDone(progress: RunProgress): number | null {
  const { clip, clips, step, steps, phase } = progress;
  if (phase === null || phase === 'load') return null;
  return Math.min(99, Math.floor((100 * (clip * steps + step)) / (clips * steps)));
}
