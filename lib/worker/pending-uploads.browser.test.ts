import Dexie from 'dexie';
import { expect, test } from 'vitest';
import { cleanUp } from '../predictions/testing/clean-up';
import { notChecked, PendingUploads } from './pending-uploads';

test('what an earlier version kept is still uploaded', async () => {
  const name = `serving-${crypto.randomUUID()}`;
  const before = new Dexie(name);
  before.version(1).stores({ finished: 'id' });
  const kept = { id: 'a'.repeat(32), job: { attempt: 1 }, videoFile: 'served-a.mp4' };
  const completion = { lease_token: 'lease-1', seed: 7 };
  await before.table('finished').put({ ...kept, beatEveryMs: 2000, completion });
  before.close();
  const pendingUploads = new PendingUploads(name);
  expect(await pendingUploads.all()).toEqual([
    {
      ...kept,
      heartbeatMs: 2000,
      completion: { ...completion, safety: notChecked, prompt_optimization: null },
    },
  ]);
  await cleanUp(pendingUploads.database);
});
