import type { Safety } from './safety';

/** The flag of the API: true where a checker flagged the video, and where a check that was asked for failed. */
export function isFlagged({ status }: Pick<Safety, 'status'>): boolean {
  return status === 'flagged' || status === 'unverified';
}
