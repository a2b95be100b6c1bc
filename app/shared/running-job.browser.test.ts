import { afterEach, expect, test } from 'vitest';
import type { ModelEntry } from '../../lib/contract';
import { entry, part } from '../models/testing/entries';
import { showLibraryJob } from './library-job';
import { showJob } from './running-job';

afterEach(() => {
  showJob('/', null);
  showLibraryJob({ status: 'loading' });
});

test('the title says how far a job is', () => {
  document.title = 'Models · Kinora';
  const job = { percent: 45, secondsRemaining: null };
  showJob('/', { ...job, state: 'running' });
  expect(document.title).toBe('45% · Models · Kinora');
  showJob('/', { percent: null, secondsRemaining: null, state: 'waiting' });
  expect(document.title).toBe('… · Models · Kinora');
  showJob('/', null);
  expect(document.title).toBe('Models · Kinora');
});

function libraryOf(...models: ModelEntry[]) {
  return { status: 'ready', snapshot: { models, tools: [], loraDownloads: [] } as never } as const;
}

test('a download and a check are in the title, behind a video, and keep the screen on', async () => {
  const requests: WakeLockSentinel[] = [];
  const own = navigator.wakeLock.request.bind(navigator.wakeLock);
  navigator.wakeLock.request = async (type) => {
    const lock = await own(type);
    requests.push(lock);
    return lock;
  };
  document.title = 'Models · Kinora';
  const parts = [
    part('transformer', { status: 'downloading', bytesDone: 300, bytesTotal: 1000 }),
    part('guidance_adapter', { bytesTotal: null }),
  ];
  showLibraryJob(libraryOf(entry({ parts })));
  expect(document.title).toBe('30% · Models · Kinora');
  await expect.poll(() => requests.length).toBe(1);
  showJob('/', { percent: 45, secondsRemaining: null, state: 'running' });
  showLibraryJob(libraryOf(entry({ parts })));
  expect(document.title).toBe('45% · Models · Kinora');
  showJob('/', null);
  showLibraryJob(
    libraryOf(entry({ parts: [part('vae', { status: 'verifying', bytesDone: 700 })] })),
  );
  expect(document.title).toBe('70% · Models · Kinora');
  expect(requests).toHaveLength(1);
  showLibraryJob(libraryOf(entry({ parts: [part('vae', { status: 'complete' })] })));
  expect(document.title).toBe('Models · Kinora');
  await expect.poll(() => requests[0]?.released).toBe(true);
  navigator.wakeLock.request = own;
});
