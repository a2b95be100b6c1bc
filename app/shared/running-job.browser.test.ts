import { afterEach, expect, test } from 'vitest';
import { showJob } from './running-job';

afterEach(() => showJob('/', null));

test('the title says how far a job is, and whether it is paused', () => {
  document.title = 'Models · Kinora';
  const job = { percent: 45, secondsRemaining: null };
  showJob('/', { ...job, state: 'running' });
  expect(document.title).toBe('45% · Models · Kinora');
  showJob('/', { ...job, state: 'paused' });
  expect(document.title).toBe('⏸ 45% · Models · Kinora');
  showJob('/', { percent: null, secondsRemaining: null, state: 'waiting' });
  expect(document.title).toBe('… · Models · Kinora');
  showJob('/', null);
  expect(document.title).toBe('Models · Kinora');
});
