/** @module-tag full */

import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import type { WorkerDeclaration } from '../../lib/contract/v3';
import type { JobLora } from '../store/schema';
import { testCaller, testJob, testJobs, testWorker } from '../testing/jobs';
import { clearJobs, openTestStore } from '../testing/store';
import { canTake, createWorkers } from './workers';

const flip = () => randomInt(2) === 1;
/** One of the values, the first in three of four cases: with equal chances hardly any worker would fit. */
const usually = <T>(first: T, ...others: readonly T[]): T =>
  (randomInt(4) > 0 ? undefined : others[randomInt(others.length)]) ?? first;

it('says of a worker what its claim says', async () => {
  const { store, close } = await openTestStore('pglite');
  try {
    const outcomes = new Set<boolean>();
    for (let round = 0; round < 40; round += 1) {
      await clearJobs(store);
      const jobs = testJobs(store, {
        KINORA_SERVING_MODELS: usually(['mini'], ['*'], ['else']),
        KINORA_SERVING_PRECISIONS: usually(['f32', 'int8'], ['int4']),
      });
      const lora = { path: 'a/b', scale: 1, from: 'hub', repository: 'a/b', file: null } as const;
      const job = await jobs.submit(
        testJob(testCaller('ada', { shared: flip() }), {
          loras: usually<JobLora[]>([], [lora], [{ ...lora, need: 'lora_14b' }]),
          input: {
            size: usually('1280*720', '720*1280'),
            duration: usually(5, 8),
            loop: usually(false, true),
            upscale: usually(1, 2),
            smooth: usually(false, true),
            ...(flip() && { last_image: 'https://example.com/b.png' }),
            ...(flip() && { last_image_at: 2 }),
            enable_safety_checker: flip(),
          },
        }),
      );
      const declaration: WorkerDeclaration = testWorker({
        precision: usually('f32', 'int8', 'int4'),
        sizes: usually(['1280*720', '720*1280'], ['1280*720']),
        loras: flip(),
        max_duration: usually(10, 5),
        knows: usually(
          ['loop', 'last_image', 'last_image_at', 'upscale', 'smooth', 'lora_14b'],
          ['loop', 'upscale'],
        ),
        safety_checker: usually('ready', 'demonstration', 'none'),
      });
      const owner = usually('ada', 'bob');
      const shared = flip();
      const caller = testCaller(owner, { shared });
      const claimed = (await jobs.claimNext(caller, declaration)) !== null;
      outcomes.add(claimed);
      const worker = { owner, shared, state: 'idle', declaration } as const;
      expect(canTake(worker, job), JSON.stringify({ worker, job })).toBe(claimed);
      expect(canTake({ ...worker, state: 'paused' }, job)).toBe(false);
    }
    expect(outcomes.size).toBe(2);

    const workers = createWorkers(store);
    const ada = testCaller('ada');
    expect(await workers.connected()).toEqual([]);
    // What this node has changed is seen at once.
    workers.seen(ada, testWorker({ worker_id: 'a'.repeat(32) }), 'busy');
    expect(await workers.connected()).toMatchObject([{ owner: 'ada', shared: false }]);
  } finally {
    await close();
  }
}, 60_000);
