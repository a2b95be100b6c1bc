import { expect, test } from 'vitest';
import { StepClock } from './step-clock';

test('neither one slow first step nor a pause changes the time of a step', () => {
  let seconds = 100;
  const clock = new StepClock(() => seconds);
  expect(clock.secondsPerStep).toBe(0);
  clock.start();
  for (const passed of [30, 1, 1.5]) {
    seconds += passed;
    clock.step();
  }
  seconds += 3600;
  clock.start();
  seconds += 1;
  clock.step();
  expect(clock.secondsPerStep).toBe(1.5);
});
