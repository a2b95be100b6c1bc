import { existsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { ApiError } from '../../lib/contract/v3';
import type { Config } from '../config';

/** How long one look at the disk is believed, in milliseconds. */
const freshMs = 2000;

/** The free space of the disk under the data folder. */
export interface Space {
  /**
   * To be called before anything large or new is written. What keeps running work alive, such as
   * beats, does not ask: the space that is held back is for it.
   *
   * @throws ApiError `STORAGE_DOWN` when less is free than `KINORA_MIN_FREE_BYTES`
   */
  require(): Promise<void>;
  /**
   * To be called before running work writes what it ends in: a video of hours is worth half of the
   * space that is held back.
   *
   * @param bytes how much is to be written
   * @throws ApiError `STORAGE_DOWN` when less is free than `KINORA_MIN_FREE_BYTES`, and less than half
   * of that would be left
   */
  requireFor(bytes: number): Promise<void>;
  /** Looks, and tells the log when space runs out or is there again. */
  look(): Promise<void>;
}

type SpaceSettings = Pick<
  Config,
  'KINORA_DATA' | 'KINORA_MIN_FREE_BYTES' | 'DATABASE_URL' | 'S3_BUCKET'
>;

/**
 * Watches the disk. PGlite does not survive a full one: when no segment of its log can be written it
 * stops for good and takes the process with it. So new work is refused long before.
 *
 * @param config looked at only where the database or the files lie in the data folder
 */
export function createSpace(config: SpaceSettings, log?: Logger): Space {
  let known: { readonly free: Promise<number>; readonly at: number } | null = null;
  let wasLow = false;
  /** @param bytes of running work, for which half of what is held back may be used */
  const isLow = async (bytes = Number.POSITIVE_INFINITY): Promise<boolean> => {
    const { KINORA_MIN_FREE_BYTES: floor, DATABASE_URL, S3_BUCKET } = config;
    if (floor === 0 || (DATABASE_URL !== undefined && S3_BUCKET !== undefined)) return false;
    if (known === null || performance.now() - known.at >= freshMs) {
      known = { free: freeBytes(config.KINORA_DATA), at: performance.now() };
    }
    const free = await known.free;
    return free < floor && free - bytes < floor / 2;
  };
  const require = async (bytes?: number): Promise<void> => {
    if (!(await isLow(bytes))) return;
    throw new ApiError('STORAGE_DOWN', 'The disk of the server is almost full.', {
      headers: { 'Retry-After': '60' },
      remedy: 'Try again later; the operator has to make room.',
    });
  };
  return {
    require: () => require(),
    requireFor: require,
    async look() {
      const low = await isLow();
      if (low === wasLow) return;
      wasLow = low;
      const free = await known?.free;
      if (low) log?.error({ free }, 'the disk is almost full: nothing new is taken');
      else log?.info({ free }, 'the disk has room again');
    },
  };
}

/** Where it cannot be told, there is enough: a write will then say what is wrong. */
async function freeBytes(folder: string): Promise<number> {
  // The folder may not have been made yet: its disk is that of the next one above.
  let place = folder;
  while (!existsSync(place) && path.dirname(place) !== place) place = path.dirname(place);
  try {
    const { bavail, bsize } = await statfs(place);
    return bavail * bsize;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
