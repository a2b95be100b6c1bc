import { expect, test } from 'vitest';
import type { DeviceReport } from '../../../lib/contract/engine';
import { deviceSentence } from '../first-run-text';
import { durationText, memoryText } from './forecast-text';

test.each([
  [{ seconds: 0.4, measured: true }, 'about 1 s'],
  [{ seconds: 203, measured: true }, 'about 3 min 20 s'],
  [{ seconds: 4000, measured: false }, 'roughly 1 h 07 min'],
  [{ seconds: 3e5, measured: true }, 'more than a day'],
])('%o is said as "%s"', (time, text) => {
  expect(durationText(time)).toBe(text);
});

test('memory says what is planned, and what a limit or a smaller card would mean', () => {
  const [full, least] = [10 * 2 ** 30, 4 * 2 ** 30];
  expect(memoryText({ full, least, planned: full })).toEqual({
    text: '10.0 GiB',
    title: 'It works from 4.0 GiB on, with parts of the model read from disk.',
  });
  expect(memoryText({ full, least, planned: 6 * 2 ** 30 }).title).toContain('10.0 GiB');
  expect(memoryText({ full, least, planned: null }).text).toBe('needs 4.0 GiB');
});

test('the sentence on the device says first what it can do', () => {
  const report: DeviceReport = {
    outcome: 'ready',
    adapter: { vendor: 'nvidia', architecture: 'hopper', device: '', description: '' },
    software: false,
    features: [],
    limits: {},
  };
  const forecast = (seconds: number) => ({
    time: { seconds, measured: false },
    memory: null,
    weightBytes: 0,
  });
  const forecasts = { small: forecast(40), standard: forecast(1800), fast: forecast(120) };
  const say = (changes: Partial<DeviceReport>, backend: 'webgpu' | 'wasm' = 'webgpu') =>
    deviceSentence(
      { status: 'known', report: { ...report, ...changes } },
      backend,
      'Wan',
      forecasts,
    );
  expect(say({})).toBe(
    'On this device (nvidia hopper), a clip of 5 s with Wan takes roughly 30 min, or roughly 2 min at Ultra-fast; its first video measures that.',
  );
  // What works is said first.
  const works = 'The demonstration model makes a clip of 5 s here in roughly 40 s.';
  expect(say({ software: true })).toContain(`${works} The browser emulates a GPU`);
  for (const without of [say({}, 'wasm'), say({ outcome: 'no-webgpu' })]) {
    expect(without).toContain(`${works} Without a GPU`);
  }
});
