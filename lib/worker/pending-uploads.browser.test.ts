import { expect, test } from 'vitest';
import { listRuns, openRunFiles, removeRun, servedRun } from '../predictions/run-files';
import { cleanUp } from '../predictions/testing/clean-up';
import { PendingUploads } from './pending-uploads';

test('what was saved of a job is removed a day later; runs of the studio stay', async () => {
  const pendingUploads = new PendingUploads(`serving-${crypto.randomUUID()}`);
  const [served, own] = [servedRun('a'.repeat(32)), 'b'.repeat(32)];
  for (const id of [served, own]) await openRunFiles(id).write('state-a', new Blob(['state']));
  // Tests that ran before in this browser may have left others.
  const ids = async () => {
    const all = (await listRuns()).map(({ id }) => id);
    return all.filter((id) => id === served || id === own).sort();
  };
  const hour = 3_600_000;
  await pendingUploads.sweep(Date.now() + 23 * hour);
  expect(await ids()).toEqual([own, served]);
  await pendingUploads.sweep(Date.now() + 25 * hour);
  expect(await ids()).toEqual([own]);
  await removeRun(own);
  await cleanUp(pendingUploads.database);
});
