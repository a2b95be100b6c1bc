import type { Safety } from './safety';

/**
 * The flag of the API: true where a checker flagged the video, and where a check that was asked for
 * failed. False means checked and clear, not asked for, or, in records of versions without the quick checker,
 * the demonstration model without a checker.
 */
export function isFlagged(safety: Pick<Safety, 'status' | 'reason'>): boolean {
  if (safety.status === 'flagged') return true;
  return safety.status === 'unverified' && safety.reason !== 'demonstration';
}
