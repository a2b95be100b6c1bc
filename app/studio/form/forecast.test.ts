import { expect, test } from 'vitest';
import type { DeviceReport } from '../../../lib/contract';
import { deviceSentence } from '../first-run-text';
import { durationText, isTooSlow } from './forecast';
import { memoryText } from './generate-bar';

test.each([
  [{ seconds: 0.4, measured: true }, 'about 1 s'],
  [{ seconds: 203, measured: true }, 'about 3 min 20 s'],
  [{ seconds: 4000, measured: false }, 'roughly 1 h 07 min'],
  [{ seconds: 3e5, measured: true }, 'more than a day'],
])('%o is said as "%s"', (time, text) => {
  expect(durationText(time)).toBe(text);
});

test('memory is spoken of where a limit or the card makes it short', () => {
  const [full, least] = [10 * 2 ** 30, 4 * 2 ** 30];
  expect(memoryText({ full, least, plan: { peak: full, decodeWork: 1 } })).toBeNull();
  const limited = memoryText({ full, least, plan: { peak: 6 * 2 ** 30, decodeWork: 1 } });
  expect(limited?.text).toBe('6.0 GiB of 10.0 GiB memory');
  expect(limited?.title).toContain('10.0 GiB');
  expect(memoryText({ full, least, plan: null })?.text).toBe('Needs 4.0 GiB of memory');
});

test('the sentence on the device says first what it can do', () => {
  const report: DeviceReport = {
    outcome: 'ready',
    adapter: { vendor: 'nvidia', architecture: 'hopper', device: '', description: '' },
    software: false,
    features: [],
    limits: {},
  };
  const forecast = (seconds: number) => ({ seconds, measured: false, memory: null });
  const forecasts = { small: forecast(40), standard: forecast(1800), fast: forecast(120) };
  const say = (changes: Partial<DeviceReport>, backend: 'webgpu' | 'wasm' = 'webgpu') =>
    deviceSentence(
      { status: 'known', report: { ...report, ...changes } },
      backend,
      'Wan',
      forecasts,
    );
  expect(say({})).toBe(
    'On this device (nvidia hopper), a clip of 5 s with Wan takes roughly 30 min, as a draft roughly 2 min; its first video measures that.',
  );
  // What works is said first.
  const sentence = 'The sample takes roughly 40 s here; Wan is too slow.';
  for (const without of [say({ software: true }), say({}, 'wasm'), say({ outcome: 'no-webgpu' })]) {
    expect(without).toBe(sentence);
  }
  const isSlow = (seconds: number, changes?: Partial<DeviceReport>) =>
    isTooSlow({ ...report, ...changes }, 'webgpu', forecast(seconds));
  expect([isSlow(3600), isSlow(3601), isSlow(1, { software: true })]).toEqual([false, true, true]);
  expect(isTooSlow(null, 'webgpu', null)).toBe(false);
});
