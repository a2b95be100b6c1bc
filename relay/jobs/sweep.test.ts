import { describe, expect, it } from 'vitest';
import { ApiError } from '../../lib/contract/v3';
import { createSweeper } from './sweep';

/** A sweeper with a lease of 30 s and pauses of 2 s, by a clock that the test moves. */
function startSweeper() {
  let seconds = 1000;
  /** How the database takes the next question. */
  let answer: number | Error = 0;
  let isTaking = false;
  const sweep = createSweeper(
    {
      async sweep(which) {
        if (answer instanceof Error) {
          if (answer instanceof ApiError || which === 'others') throw answer;
          answer = 0;
        }
        seconds += answer;
        answer = 0;
        if (which !== 'others') isTaking = true;
        return { requeued: 0, failed: 0 };
      },
    },
    { KINORA_LEASE_SECONDS: 30, KINORA_SWEEP_SECONDS: 2 },
    () => seconds * 1000,
  );

  /**
   * One sweep after a pause.
   *
   * @param answers seconds that the database takes, or what it fails with
   * @returns whether lost leases were taken away
   */
  async function takes(pause = 2, answers: number | Error = 0): Promise<boolean> {
    seconds += pause;
    answer = answers;
    isTaking = false;
    await sweep();
    return isTaking;
  }
  /** @returns seconds of ordinary pauses until lost leases are taken away, from the latest sweep on */
  async function spares(): Promise<number> {
    for (let spared = 2; spared < 1000; spared += 2) if (await takes()) return spared;
    throw new Error('No lease is ever taken away.');
  }
  return { takes, taken: () => isTaking, spares };
}

describe('a sweeper', () => {
  it('takes no lease away in its first lease period, then every time', async () => {
    const { takes, spares } = startSweeper();
    expect(await spares()).toBe(30);
    expect(await takes()).toBe(true);
    // A busy machine, and a long sweep: there is nothing to make up for.
    expect(await takes(12)).toBe(true);
    expect(await takes(2, 10)).toBe(true);
  });

  it.each([
    ['the machine slept', 40, 0],
    ['the machine slept for days', 200_000, 0],
    ['the clock was set back', -7200, 0],
    ['the database hung', 2, 40],
  ])('waits for a lease period after %s', async (_, pause, answers) => {
    const { takes, spares } = startSweeper();
    await spares();
    expect(await takes(pause, answers)).toBe(false);
    expect(await spares()).toBe(30);
    expect(await takes()).toBe(true);
  });

  it('waits for a lease period after the database was away, and says that it was', async () => {
    const { takes, spares } = startSweeper();
    await spares();
    for (let tries = 0; tries < 3; tries += 1) {
      await expect(takes(2, new ApiError('STORAGE_DOWN', 'away'))).rejects.toThrow('away');
    }
    expect(await spares()).toBe(30);
  });

  it('takes leases away although another part of the sweep fails, and says so', async () => {
    const { takes, taken, spares } = startSweeper();
    await spares();
    await expect(takes(2, new Error('one row'))).rejects.toThrow('one row');
    expect(taken()).toBe(true);
  });
});
