import { afterEach, expect, test } from 'vitest';
import { cdp } from 'vitest/browser';
import { listRuns, openRunFiles, removeRun } from './run-files';

const id = 'run-files-test';
const files = openRunFiles(id);
afterEach(() => removeRun(id));

const text = async (name: string) => (await files.read(name))?.text();

test('files of a run are written, replaced, listed and removed', async () => {
  expect(await files.read('state-a')).toBeNull();
  expect(await listRuns()).toEqual([]);
  await files.write('state-a', new Blob(['first']));
  await files.write('state-a', new Blob(['two']));
  expect(await text('state-a')).toBe('two');
  expect(await listRuns()).toEqual([
    { id, bytes: 3, lastModified: expect.any(Number), latents: false },
  ]);
  await files.write('clip-0', new Blob(['four']));
  await files.remove('state-a');
  await files.remove('state-a');
  expect(await text('state-a')).toBeUndefined();
  expect(await listRuns()).toMatchObject([{ id, bytes: 4, latents: true }]);
  await removeRun(id);
  expect(await listRuns()).toEqual([]);
});

test('a full disk is STORAGE_FULL, and the file stays as it was', async () => {
  await files.write('state-a', new Blob(['first']));
  const { usage = 0 } = await navigator.storage.estimate();
  const session = cdp();
  const { origin } = location;
  await session.send('Storage.overrideQuotaForOrigin', { origin, quotaSize: usage + 500_000 });
  try {
    const large = new Blob([new Uint8Array(20_000_000)]);
    await expect(files.write('state-a', large)).rejects.toMatchObject({ code: 'STORAGE_FULL' });
  } finally {
    await session.send('Storage.overrideQuotaForOrigin', { origin });
  }
  expect(await text('state-a')).toBe('first');
});
