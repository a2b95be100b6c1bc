import { describe, expect, it } from 'vitest';
import { predictionStatuses } from '../../lib/contract/v3';
import { failureCode, freeReleases, type JobEvent, type JobState, nextStep } from './status';

const events: readonly JobEvent[] = [
  { type: 'completed' },
  { type: 'failed', message: 'The GPU was lost.', retryable: true, code: 1403 },
  { type: 'failed', message: 'The LoRA does not fit.', retryable: false, code: 1401 },
  { type: 'released' },
  { type: 'cancelled' },
  { type: 'lease-expired' },
  { type: 'deadline-passed', seconds: 10_800 },
  { type: 'intake-failed', message: 'The image is not there.' },
];
const running = (attempt: number, releases = 0): JobState => ({
  status: 'processing',
  attempt,
  releases,
});

describe('nextStep', () => {
  it('makes only the transitions of README.md that follow a claim', () => {
    const moves = new Set<string>();
    for (const status of predictionStatuses) {
      for (const attempt of [0, 1, 2, 3]) {
        for (const event of events) {
          const step = nextStep({ status, attempt, releases: 0 }, event, 3);
          if (step) moves.add(`${status} to ${step.status}`);
        }
      }
    }
    expect([...moves].sort()).toEqual([
      'created to failed',
      'processing to completed',
      'processing to created',
      'processing to failed',
    ]);
  });

  it('retries while an attempt is left, then fails with the reason', () => {
    const lost = { type: 'lease-expired' } as const;
    expect(nextStep(running(2), lost, 3)).toMatchObject({ status: 'created', attempt: 2 });
    expect(nextStep(running(3), lost, 3)).toMatchObject({
      status: 'failed',
      code: 5003,
      error: 'The task ended without a result after 3 attempts: the last worker was lost.',
    });
    const late = { type: 'deadline-passed', seconds: 10_800 } as const;
    expect(nextStep(running(3), late, 3)).toMatchObject({
      code: 5004,
      error: 'The video was not ready within 3 hours, in the last of 3 attempts.',
    });
    expect(nextStep(running(1), { type: 'deadline-passed', seconds: 1 }, 1)?.error).toBe(
      'The video was not ready within 1 second.',
    );
  });

  it('fails at once where another attempt cannot help', () => {
    const message = 'The LoRA does not fit.';
    const unfit = { type: 'failed', message, retryable: false, code: 1401 } as const;
    expect(nextStep(running(1), unfit, 3)).toMatchObject({
      status: 'failed',
      code: 1401,
      error: 'The LoRA does not fit.',
    });
  });

  it('counts no attempt for the first 20 releases', () => {
    const released = { type: 'released' } as const;
    expect(nextStep(running(1), released, 3)).toMatchObject({
      status: 'created',
      attempt: 0,
      releases: 1,
    });
    expect(nextStep(running(1, freeReleases), released, 3)).toMatchObject({
      status: 'created',
      attempt: 1,
    });
    expect(nextStep(running(3, freeReleases + 2), released, 3)).toMatchObject({
      status: 'failed',
      code: 5003,
    });
  });

  it.each([
    ['PROMPT_REFUSED', 1200],
    ['LORA_INVALID', 1401],
    ['LORA_WRONG_BASE', 1401],
    ['LORA_MISSING', 1402],
    ['HUB_NOT_FOUND', 1402],
    ['IMAGE_UNREADABLE', 1402],
    ['OUT_OF_MEMORY', 1403],
    ['MY_IMAGE_LORA_INVALID', 1403],
    ['', 1403],
  ])('maps the worker’s code %s to %s', (code, expected) => {
    expect(failureCode(code)).toBe(expected);
  });
});
