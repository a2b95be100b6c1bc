/** @module-tag full */
import { AudioSampleSink, BlobSource, Input, MP4 } from 'mediabunny';
import { beforeAll, expect, test } from 'vitest';
import { parseParameters } from '../contract';
import { failureOf } from '../contract/testing/failure';
import { inspectVideo } from './inspect';
import { createVideoMetadata, readVideoMetadata, toMetadataTags } from './metadata';
import { addSound, readSoundDuration, type SoundSettings } from './sound';
import { createRgbaWriter } from './testing/i420';
import { packetsOf } from './testing/packets';
import { wavOf } from './testing/wav';

const [width, height, frames, frameRate] = [160, 96, 61, 24];
const seconds = frames / frameRate;
const plain: SoundSettings = { start: 0, fadeIn: 0, fadeOut: 0, loop: false };
const { signal } = new AbortController();
const row = {
  id: 'a',
  model: 'tiny',
  profile: 'standard',
  parameters: parseParameters({ prompt: 'boat', seed: 7 }),
  options: {},
  createdAt: '2026-01-02T03:04:05.678Z',
  result: { backend: 'wasm', frames, frameRate },
} as const;
const tags = toMetadataTags(row);

/** The amplitude of the tones: each second has a frequency of its own. */
const toneAt = (second: number) =>
  0.4 * Math.sin(2 * Math.PI * 300 * (1 + Math.floor(second)) * second);

/** The tones as WAV with 16 bits: in both channels, in the second one half as loud. */
function wav(duration: number, sampleRate: number): Blob {
  const samples = new Int16Array(Math.round(duration * sampleRate) * 2);
  for (let i = 0; i < samples.length; i += 2) {
    const amplitude = 32767 * toneAt(i / 2 / sampleRate);
    samples.set([amplitude, amplitude / 2], i);
  }
  return wavOf(samples, sampleRate);
}

/** The first channel of an MP4's sound from the video's start on, and its second one. */
async function decode(file: Blob) {
  const input = new Input({ source: new BlobSource(file), formats: [MP4] });
  const track = await input.getPrimaryAudioTrack();
  if (!track) throw new Error('no sound');
  const rate = await track.getSampleRate();
  const channels = [0, 1].map(() => new Float32Array(Math.ceil(seconds * rate)));
  for await (const sample of new AudioSampleSink(track).samples()) {
    const at = Math.round(sample.timestamp * rate);
    for (const [planeIndex, channel] of channels.entries()) {
      const plane = new Float32Array(sample.numberOfFrames);
      const known = Math.min(planeIndex, sample.numberOfChannels - 1);
      sample.copyTo(plane, { planeIndex: known, format: 'f32-planar' });
      channel.set(plane.subarray(Math.max(0, -at), channel.length - at), Math.max(0, at));
    }
    sample.close();
  }
  const end = await track.computeDuration();
  input.dispose();
  const [left, right] = channels as [Float32Array, Float32Array];
  return { left, right, rate, end };
}

/** Root mean square of the amplitudes from one second to another. */
function loudness(samples: Float32Array, rate: number, from: number, to: number): number {
  const part = samples.subarray(Math.round(from * rate), Math.round(to * rate));
  return Math.sqrt(part.reduce((sum, value) => sum + value * value, 0) / part.length);
}

/** Largest loudness of the difference to what is expected, in any 50 ms of the range. */
function difference(
  samples: Float32Array,
  rate: number,
  expected: (second: number) => number,
  [from, to]: readonly [number, number],
): number {
  const off = samples.map((value, i) => value - expected(i / rate));
  const windows = Math.floor((to - from) / 0.05);
  return Math.max(
    ...Array.from({ length: windows }, (_, i) =>
      loudness(off, rate, from + i * 0.05, from + (i + 1) * 0.05),
    ),
  );
}

let video: Blob;
beforeAll(async () => {
  const writer = await createRgbaWriter({ width, height, frameRate, frames });
  for (let i = 0; i < frames; i++) {
    await writer.add(new Uint8ClampedArray(width * height * 4).fill(4 * i));
  }
  video = await writer.finish();
});

test('sound starts where it is to start and ends with the video, which is copied', async () => {
  const audio = wav(5, 44_100);
  expect(await readSoundDuration(audio)).toBe(5);
  const made = await addSound(video, audio, { ...plain, start: 1.5 }, tags, signal);
  expect(await packetsOf(made)).toEqual(await packetsOf(video));
  expect(await inspectVideo(made)).toEqual(await inspectVideo(video));
  expect(await readVideoMetadata(made)).toEqual(createVideoMetadata(row));
  const { left, right, rate, end } = await decode(made);
  expect(rate).toBe(44_100);
  expect(end).toBeGreaterThan(seconds - 0.03);
  expect(end).toBeLessThanOrEqual(seconds);
  // The pre-echo of a new tone; a sound that is off by 1 ms differs by 0.5.
  const expected = (second: number) => toneAt(1.5 + second);
  expect(difference(left, rate, expected, [0, 2.5])).toBeLessThan(0.1);
  expect(difference(right, rate, (second) => expected(second) / 2, [0, 2.5])).toBeLessThan(0.05);

  // This is AAC in a video file: as it is, its packets are copied.
  const copied = await addSound(video, made, plain, tags, signal);
  expect(await packetsOf(copied, 'audio')).toEqual(await packetsOf(made, 'audio'));
  expect(difference((await decode(copied)).left, rate, expected, [0, 2.5])).toBeLessThan(0.1);
  expect(await packetsOf(copied)).toEqual(await packetsOf(video));
});

test('short sound is repeated or followed by silence; it fades in and out', async () => {
  const audio = wav(1, 22_050);
  const looped = await addSound(video, audio, { ...plain, start: 0.25, loop: true }, tags, signal);
  const { left, rate } = await decode(looped);
  // Resampled for browsers that encode no other rate.
  expect(rate).toBe(48_000);
  for (const from of [0, 0.75, 1.5]) {
    const inside = [from + 0.05, Math.min(from + 0.7, 2.5)] as const;
    const expected = (second: number) => toneAt(0.25 + second - from);
    expect(difference(left, rate, expected, inside), `from ${from}`).toBeLessThan(0.05);
  }

  const once = await addSound(video, audio, { ...plain, start: 0.25 }, tags, signal);
  const short = (await decode(once)).left;
  expect(loudness(short, rate, 0.6, 0.74)).toBeGreaterThan(0.2);
  expect(loudness(short, rate, 0.8, seconds)).toBeLessThan(0.001);

  const faded = { ...plain, fadeIn: 0.5, fadeOut: 1, loop: true };
  const { left: rising } = await decode(await addSound(video, audio, faded, tags, signal));
  const levels = Array.from({ length: 25 }, (_, i) => loudness(rising, rate, i / 10, (i + 1) / 10));
  const [rise, held, fall] = [levels.slice(0, 6), levels.slice(5, 15), levels.slice(15)];
  expect(rise).toEqual(rise.toSorted((a, b) => a - b));
  expect(fall).toEqual(fall.toSorted((a, b) => b - a));
  expect(Math.min(...held)).toBeGreaterThan(0.25);
  expect(levels[0]).toBeLessThan(0.05);
  expect(levels[24]).toBeLessThan(0.05);
});

test('what is no audio, or ends too early, is refused; an abort ends it', async () => {
  const refused = { code: 'AUDIO_UNREADABLE' };
  expect(await failureOf(addSound(video, new Blob(['text']), plain, tags, signal))).toMatchObject(
    refused,
  );
  expect(await failureOf(readSoundDuration(video))).toMatchObject(refused);
  const audio = wav(1, 48_000);
  const late = addSound(video, audio, { ...plain, start: 3 }, tags, signal);
  expect(await failureOf(late)).toMatchObject({ ...refused, message: /ends before 3 s/ });
  const unreadable = addSound(new Blob(['text']), audio, plain, tags, signal);
  expect(await failureOf(unreadable)).toMatchObject({ code: 'VIDEO_UNREADABLE' });
  const aborted = addSound(video, audio, plain, tags, AbortSignal.abort());
  expect(await failureOf(aborted)).toMatchObject({ code: 'CANCELLED' });
});

/** What the files in `testing/sounds` sound like, for one second. */
const chirpAt = (second: number) => 0.5 * Math.sin(2 * Math.PI * (200 + 150 * second) * second);

/** By how many milliseconds a chirp is late that starts at `from`, compared from then on for `length` seconds. */
function delayOf(samples: Float32Array, rate: number, at: number, from: number, length: number) {
  let best = { error: Number.POSITIVE_INFINITY, shift: 0 };
  for (let shift = -Math.round(rate * 0.16); shift <= rate * 0.16; shift += 1) {
    let error = 0;
    for (let i = Math.round(0.05 * rate); i < length * rate; i += 31) {
      const sample = samples[Math.round(at * rate) + i + shift] ?? 0;
      error += (sample - chirpAt(from + i / rate)) ** 2;
    }
    if (error < best.error) best = { error, shift };
  }
  return (1000 * best.shift) / rate;
}

const soundFile = async (name: string) =>
  (await fetch(new URL(`./testing/sounds/${name}`, import.meta.url))).blob();

/** The chirp as WAV in both channels. */
function chirpWav(sampleRate: number, duration = 1, start = 0): Blob {
  const samples = new Int16Array(Math.round(duration * sampleRate) * 2);
  const first = Math.round(start * sampleRate);
  for (let i = 0; i < sampleRate; i += 1) {
    samples.fill(32767 * chirpAt(i / sampleRate), 2 * (first + i), 2 * (first + i) + 2);
  }
  return wavOf(samples, sampleRate);
}

test.each([
  ...['wav', '48000.mp3', '8000.mp3', 'mono-mp3.mp4', '44100.m4a', '24000.ogg', '48000.opus'],
  ...['48000.webm', '8000.flac'],
])('%s starts where it is to start, and is repeated without a hole', async (name) => {
  const audio = name === 'wav' ? chirpWav(44_100) : await soundFile(name);
  for (const start of [0, 0.4]) {
    const made = await addSound(video, audio, { ...plain, start, loop: true }, tags, signal);
    const { left, rate } = await decode(made);
    const length = 1 - start;
    // Packets of MP3 in MP4 are decoded one by one: what fills the last one is heard.
    const times = name === 'mono-mp3.mp4' ? 1 : Math.floor(2.5 / length);
    for (let at = 0; at < (times - 0.5) * length; at += length) {
      const place = `from ${start}, at ${at}`;
      const delay = delayOf(left, rate, at, start, length - 0.05);
      // Chromium takes the times of WebM in whole milliseconds: each time, half of one is missing.
      const most = name === '48000.webm' ? 0.6 * (1 + at / length) : 1;
      expect(Math.abs(delay), `${place}: ${delay} ms`).toBeLessThanOrEqual(most);
      // A hole of 7 ms has a loudness of 0.13 in 50 ms of the tone.
      const expected = (second: number) => chirpAt(start + second - at - delay / 1000);
      const end = [at + length - 0.05, at + length] as const;
      expect(difference(left, rate, expected, end), place).toBeLessThan(0.13);
      expect(difference(left, rate, expected, [at, at + 0.05]), place).toBeLessThan(0.13);
    }
  }
});

test.each([
  ...['center-3.0.m4a', 'center-4.0.m4a', 'center-5.0.flac', 'center-5.1.ogg', 'center-7.1.opus'],
])('%s: the centre is heard on both sides, as in ffmpeg', async (name) => {
  const made = await addSound(video, await soundFile(name), { ...plain, loop: true }, tags, signal);
  const { left, right, rate } = await decode(made);
  for (const side of [left, right]) {
    expect(loudness(side, rate, 0.1, 0.4)).toBeCloseTo(0.4 / 2, 1.5);
  }
});

test('of long audio the part that is heard is decoded', async () => {
  // At 48 kHz, 36 minutes have more than 400 MB.
  const audio = chirpWav(8000, 36 * 60, 2000.25);
  const made = await addSound(video, audio, { ...plain, start: 2000.25 }, tags, signal);
  const { left, rate } = await decode(made);
  expect(Math.abs(delayOf(left, rate, 0, 0, 0.9))).toBeLessThanOrEqual(1);
  expect(difference(left, rate, chirpAt, [0, 0.9])).toBeLessThan(0.1);
  const late = addSound(video, audio, { ...plain, start: 36 * 60 }, tags, signal);
  expect(await failureOf(late)).toMatchObject({ message: /ends before 2160 s/ });
});
