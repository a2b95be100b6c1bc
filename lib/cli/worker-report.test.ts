import { beforeEach, expect, test } from 'vitest';
import type { ServeReport } from '../worker/api';
import { WorkerReport } from './worker-report';

const job = {
  id: 'abcdef0123456789'.repeat(2),
  attempt: 2,
  size: '720*1280',
  duration: 5,
  loras: 1,
  startedAt: 0,
} as const;
let lines: string[];
let now: number;
let report: WorkerReport;

beforeEach(() => {
  lines = [];
  now = 0;
  report = new WorkerReport(
    (line) => lines.push(line),
    () => now,
  );
});

function take(...events: ServeReport[]): void {
  for (const event of events) report.take(event);
}

test('a job from its claim to its end, steps now and then', () => {
  const options = { safetyChecker: true };
  take({ type: 'claimed', job, parameters: { num_inference_steps: 4 }, options });
  const progress = { type: 'progress', id: job.id, phase: 'denoise', steps: 4 } as const;
  for (const step of [0, 1, 2, 3, 4]) {
    take({ ...progress, step });
    now += 6000;
  }
  take(
    { ...progress, phase: 'decode', step: 4 },
    { ...progress, phase: 'decode', step: 4 },
    { type: 'uploading', job, bytes: 6_300_000 },
    {
      type: 'ended',
      job: {
        id: job.id,
        attempt: 2,
        outcome: 'completed',
        error: null,
        seconds: 40,
        endedAt: 0,
        safety: 'flagged',
        prompt: 'unavailable',
      },
    },
  );
  expect(lines).toEqual([
    'job abcdef01 taken, attempt 2: 720×1280, 5 s, 4 steps, 1 LoRA',
    'job abcdef01 step 1/4',
    'job abcdef01 step 3/4',
    'job abcdef01 step 4/4',
    'job abcdef01 decode frames',
    'job abcdef01 sending 6.3 MB',
    'job abcdef01 done after 40 s, safety check: flagged, prompt: unavailable',
  ]);
});

test('a failure says why, and no line has a prompt to show', () => {
  const error = { code: 'LORA_MISSING', message: 'No such LoRA.', remedy: 'Check it.' } as const;
  const ended = { id: job.id, attempt: 1, seconds: 1, endedAt: 0, safety: null, prompt: null };
  const options = { safetyChecker: true };
  take({ type: 'claimed', job, parameters: { num_inference_steps: 4 }, options });
  take({ type: 'ended', job: { ...ended, outcome: 'failed', error } });
  expect(lines.at(-1)).toBe('job abcdef01 failed after 1 s: No such LoRA. Check it.');
});

test('waiting is said once, with the reason why jobs are not given', () => {
  take({ type: 'nothing', skipped: {} }, { type: 'nothing', skipped: {} });
  take({ type: 'nothing', skipped: { model: 2 } }, { type: 'gpuBusy' }, { type: 'gpuBusy' });
  expect(lines).toEqual([
    'waiting for jobs',
    'waiting: 2 jobs wait, but this server does not assign its jobs to this model.',
    'waiting: another tab has the GPU',
  ]);
});

test('a pause after a failed attempt is called one, and a wait below a second is none', () => {
  take({ type: 'nothing', skipped: { 'back-off': 1 } });
  const reason = 'The server cannot be reached.';
  take({ type: 'unreachable', at: Date.now() + 300, reason });
  take({ type: 'unreachable', at: Date.now() + 4200, reason });
  expect(lines).toEqual([
    'waiting: 1 job waits, but an attempt failed, and the next one begins after a pause.',
    'connection lost: The server cannot be reached. Trying again now.',
    'connection lost: The server cannot be reached. Trying again in 4 s.',
  ]);
});
