import { expect, test } from 'vitest';
import { RunControl } from './control';

test('what is asked of a run is remembered', () => {
  const control = new RunControl();
  expect(control).toMatchObject({ finishing: false, pausing: false });
  control.pause();
  control.finishEarly();
  expect(control).toMatchObject({ finishing: true, pausing: true });
  expect(control.signal.aborted).toBe(false);
  control.cancel();
  expect(control.signal.reason).toMatchObject({ code: 'CANCELLED' });
});
