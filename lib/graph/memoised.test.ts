import { expect, test } from 'vitest';
import { memoised } from '.';

test('a value is made once for equal arguments, and anew for others', () => {
  let made = 0;
  const sum = memoised((spec: { width: number }, repeat: number) => {
    made += 1;
    return spec.width + repeat === 0 ? undefined : { sum: spec.width + repeat };
  });
  const first = sum({ width: 3 }, 1);
  expect(sum({ width: 3 }, 1)).toBe(first);
  expect(sum({ width: 4 }, 1)).toEqual({ sum: 5 });
  expect(sum({ width: 3 }, 2)).toEqual({ sum: 5 });
  expect(made).toBe(3);
  expect([sum({ width: 0 }, 0), sum({ width: 0 }, 0), made]).toEqual([undefined, undefined, 4]);
});
