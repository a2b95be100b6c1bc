import { expect, test } from 'vitest';
import { RunControl } from './control';

/** Whether a promise has settled by now. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol();
  const tick = new Promise((resolve) => setTimeout(resolve, 0, pending));
  return (await Promise.race([promise.catch(() => null), tick])) !== pending;
}

test('a run continues until it is paused, and again after it is resumed', async () => {
  const control = new RunControl();
  await control.whenRunning();
  control.pause();
  control.pause();
  expect(control.paused).toBe(true);
  const waiting = control.whenRunning();
  expect(await settled(waiting)).toBe(false);
  control.resume();
  expect(control.paused).toBe(false);
  await waiting;
  control.resume();
  await control.whenRunning();
  control.pause();
  expect(await settled(control.whenRunning())).toBe(false);
  control.resume();
});

test('finishing early ends a pause and is remembered', async () => {
  const control = new RunControl();
  expect(control.finishing).toBe(false);
  control.pause();
  const waiting = control.whenRunning();
  control.finishEarly();
  await waiting;
  expect(control.finishing).toBe(true);
  expect(control.signal.aborted).toBe(false);
});

test('cancelling ends a pause with CANCELLED', async () => {
  const control = new RunControl();
  control.pause();
  const waiting = control.whenRunning();
  control.cancel();
  await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' });
  expect(control.signal.reason).toMatchObject({ code: 'CANCELLED' });
  await expect(control.whenRunning()).rejects.toMatchObject({ code: 'CANCELLED' });
});
