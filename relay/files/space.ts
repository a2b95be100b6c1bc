import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';
import { Kept } from '../kept';

/** How long one reading of the free space is used, in milliseconds. */
const freshMs = 2000;

/**
 * Watches the free space of the disk, which matters where database or files are in the data folder. When PGlite
 * cannot write its log it never returns and blocks the process, so new work is refused long before the disk is full.
 *
 * @returns to be called before anything large or new is written (heartbeats and the like do not call it: the reserved
 *   space is for them). A running job's result of so many bytes may use half of the reserved space. It throws ApiError
 *   `STORAGE_DOWN` when less is free
 */
export function createSpace(
  config: Pick<Config, 'KINORA_DATA' | 'KINORA_MIN_FREE_BYTES' | 'DATABASE_URL' | 'S3_BUCKET'>,
) {
  const known = new Kept<number>(freshMs, 1);
  return async (bytes = Number.POSITIVE_INFINITY): Promise<void> => {
    const { KINORA_MIN_FREE_BYTES: floor, DATABASE_URL, S3_BUCKET } = config;
    if (floor === 0 || (DATABASE_URL !== undefined && S3_BUCKET !== undefined)) return;
    const free = await known.get('free', () => freeBytes(config.KINORA_DATA));
    if (free >= floor || free - bytes >= floor / 2) return;
    throw new ApiError('STORAGE_DOWN', 'The disk of the server is almost full.', {
      headers: { 'Retry-After': '60' },
      remedy: 'Try again later; the operator has to free disk space.',
    });
  };
}

/** Infinite where it cannot be read: a write then reports what is wrong. */
async function freeBytes(folder: string): Promise<number> {
  // Before the folder is made, its disk is that of the nearest existing parent.
  let existing = folder;
  while (!existsSync(existing) && path.dirname(existing) !== existing) {
    existing = path.dirname(existing);
  }
  const disk = await statfs(existing).catch(() => null);
  return disk ? disk.bavail * disk.bsize : Number.POSITIVE_INFINITY;
}
