import { expect, test } from 'vitest';
import { scheduleSound, soundSeconds } from './sound';

test('the sound is heard, is not loud, begins and ends without a click, and is over in time', async () => {
  const rate = 48_000;
  const context = new OfflineAudioContext(1, rate, rate);
  scheduleSound(context);
  const samples = (await context.startRendering()).getChannelData(0);
  const loudest = (from: number, to: number) =>
    Math.max(...samples.slice(from * rate, to * rate).map(Math.abs));
  expect(loudest(0, soundSeconds)).toBeGreaterThan(0.1);
  expect(loudest(0, soundSeconds)).toBeLessThan(0.4);
  expect(loudest(soundSeconds, 1)).toBe(0);
  expect(loudest(soundSeconds - 0.01, soundSeconds)).toBeLessThan(0.002);
  const jumps = samples.slice(1).map((sample, i) => Math.abs(sample - (samples[i] ?? 0)));
  expect(Math.max(...jumps)).toBeLessThan(0.05);
});
