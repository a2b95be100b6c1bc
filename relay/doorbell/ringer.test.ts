import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { chooseTabs, type Ringable, Ringer } from './ringer';

const tab = (more: Partial<Ringable> = {}): Ringable => ({
  owner: 'ada',
  shared: false,
  idle: true,
  rungAt: 0,
  ...more,
});

describe('which tabs are rung', () => {
  test('idle ones of the owner, those that waited longest first, four for a job', () => {
    const tabs = [5, 3, 1, 4, 2].map((rungAt) => tab({ rungAt }));
    const others = [
      tab({ owner: 'bob' }),
      tab({ owner: 'bob', shared: true }),
      tab({ idle: false }),
    ];
    const chosen = chooseTabs([...others, ...tabs], 'ada', 1);
    expect(chosen.map(({ rungAt }) => rungAt)).toEqual([1, 2, 3, 4]);
    expect(chosen.every(({ owner }) => owner === 'ada')).toBe(true);
  });

  test('for a shared job any owner’s, those that take everybody’s first', () => {
    const tabs = [tab(), tab({ owner: 'bob', shared: true, rungAt: 9 }), tab({ owner: 'carol' })];
    expect(chooseTabs(tabs, '*', 1).map(({ owner }) => owner)).toEqual(['bob', 'ada', 'carol']);
  });

  test('never all of a thousand', () => {
    const tabs = Array.from({ length: 1000 }, () => tab());
    expect(chooseTabs(tabs, 'ada', 1)).toHaveLength(4);
    expect(chooseTabs(tabs, 'ada', 1000)).toHaveLength(64);
  });
});

test('the first job rings at once, a burst after it once more with its number', async () => {
  const rings: [string, number][] = [];
  const ringer = new Ringer((owner, jobs) => rings.push([owner, jobs]));
  for (let i = 0; i < 50; i++) ringer.jobAvailable('ada');
  ringer.jobAvailable('bob');
  expect(rings).toEqual([
    ['ada', 1],
    ['bob', 1],
  ]);
  await expect.poll(() => rings, { timeout: 30_000 }).toHaveLength(3);
  expect(rings[2]).toEqual(['ada', 49]);
  // After the round of the burst, and a quiet one, a job rings at once again.
  await delay(250);
  ringer.jobAvailable('ada');
  expect(rings[3]).toEqual(['ada', 1]);
  ringer.close();
});
