import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ApiError } from '../../lib/contract/v3';

/** Where `npm run migrations` puts them. */
export const migrationsFolder = fileURLToPath(new URL('./migrations', import.meta.url));

/** @throws ApiError `STORAGE_DOWN` when it takes longer */
export async function withinASecond(work: PromiseLike<unknown>): Promise<void> {
  const timer = new AbortController();
  const late = delay(1000, true, { signal: timer.signal, ref: false }).catch(() => false);
  try {
    const answered = Promise.resolve(work).then(() => false);
    if (await Promise.race([answered, late])) throw new ApiError('STORAGE_DOWN');
  } finally {
    timer.abort();
  }
}
