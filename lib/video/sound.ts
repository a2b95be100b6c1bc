import {
  ADTS,
  AudioSample,
  AudioSampleSource,
  BlobSource,
  BufferTarget,
  Conversion,
  canEncodeAudio,
  EncodedAudioPacketSource,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  FLAC,
  Input,
  type InputAudioTrack,
  MATROSKA,
  type MetadataTags,
  MP3,
  MP4,
  Mp4OutputFormat,
  OGG,
  Output,
  QTFF,
  Quality,
  WAVE,
  WavOutputFormat,
  WEBM,
} from 'mediabunny';
import { type ErrorCode, KinoraError, toKinoraError } from '../contract';
import { inspectVideo, type VideoFacts } from './inspect';

/** Which part of an audio file is heard, and how. All in seconds. */
export interface SoundSettings {
  /** Where in the audio file the sound starts. */
  readonly start: number;
  /** Duration of the linear rise of the amplitude at the start; 0 for none. */
  readonly fadeIn: number;
  /** Duration of the linear fall of the amplitude before the sound ends; 0 for none. */
  readonly fadeOut: number;
  /** Whether audio that ends before the video is repeated from `start` on; otherwise the rest is silent. */
  readonly loop: boolean;
}

/** Not HLS, whose playlists name files on other servers. */
const formats = [MP4, QTFF, MATROSKA, WEBM, WAVE, OGG, FLAC, MP3, ADTS];

const encoding = { codec: 'aac', quality: new Quality({ bitrate: 192_000 }) } as const;

/**
 * Samples per channel of an AAC packet. As packets overlap, an encoder delays the sound by at least one
 * (ISO/IEC 14496-3), so that the first one is given a time before the video's start.
 */
const packetLength = 1024;

/**
 * The duration of an audio file in seconds.
 *
 * @throws KinoraError `AUDIO_UNREADABLE`
 */
export async function readSoundDuration(file: Blob): Promise<number> {
  return withAudio(file, (track) => track.computeDuration());
}

/**
 * Puts sound under a video. The video's packets are copied. Audio that is AAC already and is not
 * changed is copied too, as far as the video is long; other audio is decoded and encoded as AAC.
 *
 * @param audio of any length
 * @param tags of the result
 * @returns an MP4 as long as the video; sound that the video has already is replaced
 * @throws KinoraError `AUDIO_UNREADABLE`, also where `start` is behind the end of the audio; `VIDEO_UNREADABLE`;
 *   `ENCODER_FAILED`; `CANCELLED` after an abort
 */
export async function addSound(
  video: Blob,
  audio: Blob,
  settings: SoundSettings,
  tags: MetadataTags,
  signal: AbortSignal,
): Promise<Blob> {
  const facts = await inspectVideo(video);
  const { durationSeconds } = facts;
  const sound = await withAudio(audio, async (track) => {
    const { start, fadeIn, fadeOut, loop } = settings;
    const isUnchanged = start === 0 && fadeIn === 0 && fadeOut === 0;
    const copies =
      (await track.getCodec()) === 'aac' &&
      isUnchanged &&
      !(loop && (await track.computeDuration()) < durationSeconds);
    return copies ? null : await decodeSound(audio, track, start, durationSeconds);
  });
  try {
    signal.throwIfAborted();
    const aac = sound ? await encodeAac(sound, durationSeconds, settings, signal) : audio;
    return await withAudio(aac, (track) => mux(video, track, facts, tags, signal));
  } catch (thrown) {
    throw withCode('ENCODER_FAILED', thrown);
  }
}

/** A thrown error, with a code where it has none. */
function withCode(code: ErrorCode, cause: unknown): KinoraError {
  const error = toKinoraError(cause);
  return error.code === 'INTERNAL' ? new KinoraError(code, undefined, { cause }) : error;
}

async function withAudio<T>(file: Blob, use: (track: InputAudioTrack) => Promise<T>): Promise<T> {
  const input = new Input({ source: new BlobSource(file), formats });
  try {
    const track = await input.getPrimaryAudioTrack();
    // Copy protection hides the codec.
    if (!track || (await track.getCodec()) === null) throw new KinoraError('AUDIO_UNREADABLE');
    return await use(track);
  } catch (thrown) {
    throw withCode('AUDIO_UNREADABLE', thrown);
  } finally {
    input.dispose();
  }
}

interface Sound {
  readonly sampleRate: number;
  /** Amplitudes from −1 to 1, `channels[channel][index]`; all channels have the same length. */
  readonly channels: readonly Float32Array<ArrayBuffer>[];
  /** For each channel of the output, the gains of those of the file. */
  readonly gains: readonly (readonly number[])[];
}

/** Longer audio is decoded from a little before its start on. 17 minutes of stereo have as many bytes. */
const maxDecodedBytes = 400_000_000;

/** Seconds before a start from which packets are decoded: they need what earlier ones say. */
const preRoll = 0.5;

/** Samples by which MP3 is late: LAME's delay and that of a decoder. */
const mp3Delay = 576 + 529;

const left = [1, 0];
const right = [0, 1];
const center = [Math.SQRT1_2, Math.SQRT1_2];
const none = [0, 0];
const backLeft = [Math.SQRT1_2, 0];
const backRight = [0, Math.SQRT1_2];
const backCenter = [0.5, 0.5];

/** Gains into left and right of channels in the order in which decoders give them: ffmpeg's, which leaves out LFE. */
const downmixes = [
  ...[[[1]], [left, right], [left, right, center], [left, right, backLeft, backRight]],
  [left, right, center, backLeft, backRight],
  [left, right, center, none, backLeft, backRight],
  [left, right, center, none, backCenter, backLeft, backRight],
  [left, right, center, none, backLeft, backRight, backLeft, backRight],
];

/**
 * The sound from `start` on, for at least `seconds` where it has as many. The browser decodes the whole file where
 * it can: it knows the delays of encoders and where the last packet ends.
 */
async function decodeSound(
  file: Blob,
  track: InputAudioTrack,
  start: number,
  seconds: number,
): Promise<Sound> {
  // The rates that each browser encodes.
  const sampleRate = (await track.getSampleRate()) === 44_100 ? 44_100 : 48_000;
  const duration = await track.computeDuration();
  const count = await track.getNumberOfChannels();
  const decode = async (source: Blob) =>
    new OfflineAudioContext(1, 1, sampleRate).decodeAudioData(await source.arrayBuffer());
  const codec = await track.getCodec();
  // Chromium drops the delay of MP3 and Opus in MP4 twice: by the edit list, and in the packets.
  const isOdd = (codec === 'mp3' || codec === 'opus') && (await hasEditList(track));
  const isShort = duration * sampleRate * 4 * count <= maxDecodedBytes;
  let skipped = 0;
  let buffer = isShort && !isOdd ? await decode(file).catch(() => null) : null;
  if (!buffer && start < duration) {
    skipped = Math.max(0, start - preRoll);
    buffer = await decode(await decodePart(track, skipped, start + seconds));
  }
  const first = Math.round((start - skipped) * sampleRate);
  if (!buffer || first >= buffer.length) {
    throw new KinoraError('AUDIO_UNREADABLE', `The audio ends before ${start} s.`, {
      remedy: 'Let it start earlier.',
    });
  }
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, channel) =>
    buffer.getChannelData(channel).subarray(first),
  );
  // AAC with four channels has a centre and one at the back (ISO/IEC 14496-3, table 1.19).
  const isAac4 = channels.length === 4 && codec === 'aac';
  const mix = isAac4 ? [left, right, center, backCenter] : downmixes[channels.length - 1];
  if (!mix) {
    throw new KinoraError('AUDIO_UNREADABLE', `The audio has ${channels.length} channels.`);
  }
  const sides = channels.length === 1 ? [0] : [0, 1];
  return { sampleRate, channels, gains: sides.map((side) => mix.map((gains) => gains[side] ?? 0)) };
}

/** Whether the times of packets leave out an encoder's delay. */
async function hasEditList(track: InputAudioTrack): Promise<boolean> {
  const format = await track.input.getFormat();
  return format === MP4 || format === QTFF;
}

/** A part of a sound as WAV. */
async function decodePart(track: InputAudioTrack, from: number, to: number): Promise<Blob> {
  const isLate = (await track.getCodec()) === 'mp3' && !(await hasEditList(track));
  const delay = isLate ? mp3Delay / (await track.getSampleRate()) : 0;
  const output = new Output({ format: new WavOutputFormat(), target: new BufferTarget() });
  const conversion = await Conversion.init({
    input: track.input,
    output,
    tags: {},
    trim: { start: from + delay, end: to + delay },
    video: { discard: true },
    audio: (one) => (one.id === track.id ? { codec: 'pcm-f32' } : { discard: true }),
  });
  if (!conversion.isValid) throw new KinoraError('AUDIO_UNREADABLE');
  await conversion.execute();
  return new Blob([output.target.buffer ?? new ArrayBuffer(0)]);
}

/** An MP4 of `seconds` of sound: looped or not, with its fades, in AAC-LC of at most two channels. */
async function encodeAac(
  { sampleRate, channels, gains }: Sound,
  seconds: number,
  { fadeIn, fadeOut, loop }: SoundSettings,
  signal: AbortSignal,
): Promise<Blob> {
  const format = { sampleRate, numberOfChannels: gains.length };
  if (!(await canEncodeAudio('aac', { ...encoding, ...format }))) {
    const { registerAacEncoder } = await import('@mediabunny/aac-encoder');
    registerAacEncoder();
  }
  const available = channels[0]?.length ?? 0;
  const heard = Math.round(seconds * sampleRate);
  const total = loop ? heard : Math.min(available, heard);
  const fade = (index: number) => {
    const rise = fadeIn > 0 ? Math.min(1, index / (fadeIn * sampleRate)) : 1;
    const fall = fadeOut > 0 ? Math.min(1, (total - index) / (fadeOut * sampleRate)) : 1;
    return rise * fall;
  };
  return writeMp4(async (output) => {
    const source = new AudioSampleSource(encoding);
    output.addAudioTrack(source);
    await output.start();
    for (let first = 0; first < total; first += sampleRate) {
      signal.throwIfAborted();
      const length = Math.min(sampleRate, total - first);
      const data = new Float32Array(length * gains.length);
      for (const [side, mix] of gains.entries()) {
        for (let i = 0; i < length; i++) {
          const at = (first + i) % available;
          const amplitude = mix.reduce((sum, gain, n) => sum + gain * (channels[n]?.[at] ?? 0), 0);
          data[side * length + i] = amplitude * fade(first + i);
        }
      }
      const sample = new AudioSample({
        data,
        format: 'f32-planar',
        ...format,
        timestamp: (first - packetLength) / sampleRate,
      });
      await source.add(sample);
      sample.close();
    }
  });
}

/** Copies the packets of both; those of the sound end with the video. */
async function mux(
  video: Blob,
  sound: InputAudioTrack,
  { frameRate, durationSeconds }: VideoFacts,
  tags: MetadataTags,
  signal: AbortSignal,
): Promise<Blob> {
  const input = new Input({ source: new BlobSource(video), formats: [MP4] });
  try {
    const picture = await input.getPrimaryVideoTrack();
    const pictureConfig = await picture?.getDecoderConfig();
    const soundConfig = await sound.getDecoderConfig();
    if (!picture || !pictureConfig) throw new KinoraError('VIDEO_UNREADABLE');
    if (!soundConfig) throw new KinoraError('AUDIO_UNREADABLE');
    const end = (await picture.getFirstTimestamp()) + durationSeconds;
    return await writeMp4(async (output) => {
      const pictures = new EncodedVideoPacketSource('avc');
      const sounds = new EncodedAudioPacketSource('aac');
      output.addVideoTrack(pictures, { frameRate, rotation: await picture.getRotation() });
      output.addAudioTrack(sounds);
      output.setMetadataTags(tags);
      await output.start();
      for await (const packet of new EncodedPacketSink(picture).packets()) {
        signal.throwIfAborted();
        await pictures.add(packet, { decoderConfig: pictureConfig });
      }
      for await (const packet of new EncodedPacketSink(sound).packets()) {
        if (packet.timestamp + packet.duration > end) break;
        await sounds.add(packet, { decoderConfig: soundConfig });
      }
    });
  } finally {
    input.dispose();
  }
}

/** The file of what `fill` adds to it. */
async function writeMp4(fill: (output: Output) => Promise<void>): Promise<Blob> {
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: 'in-memory' }), target });
  try {
    await fill(output);
    await output.finalize();
  } catch (thrown) {
    // The first error of the output is the reason.
    await output.cancel().catch(() => {});
    throw thrown;
  }
  if (!target.buffer) throw new Error('it gave no data');
  return new Blob([target.buffer], { type: 'video/mp4' });
}
