import {
  ADTS,
  AudioSample,
  AudioSampleSink,
  AudioSampleSource,
  BlobSource,
  BufferTarget,
  canEncodeAudio,
  EncodedAudioPacketSource,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  FLAC,
  Input,
  type InputAudioTrack,
  MATROSKA,
  MP3,
  MP4,
  Mp4OutputFormat,
  OGG,
  Output,
  QTFF,
  Quality,
  WAVE,
  WEBM,
} from 'mediabunny';
import { type ErrorCode, KinoraError, toKinoraError } from '../contract/errors';
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
 * Puts sound under a video. The video's packets and the metadata are copied. Audio that is AAC already and is not
 * changed is copied too, as far as the video is long; other audio is decoded and encoded as AAC.
 *
 * @param audio of any length: only the part that is heard is decoded
 * @returns an MP4 as long as the video; sound that the video has already is replaced
 * @throws KinoraError `AUDIO_UNREADABLE`, also where `start` is behind the end of the audio; `VIDEO_UNREADABLE`;
 *   `ENCODER_FAILED`; `CANCELLED` after an abort
 */
export async function addSound(
  video: Blob,
  audio: Blob,
  settings: SoundSettings,
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
    return copies ? null : await decodePart(track, start, durationSeconds, signal);
  });
  try {
    const aac = sound ? await encodeAac(sound, durationSeconds, settings, signal) : audio;
    return await withAudio(aac, (track) => mux(video, track, facts, signal));
  } catch (thrown) {
    throw withCode('ENCODER_FAILED', thrown);
  }
}

/** What was thrown, with a code where it has none. */
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
}

/** The sound from `start` on, for at most `seconds`. */
async function decodePart(
  track: InputAudioTrack,
  start: number,
  seconds: number,
  signal: AbortSignal,
): Promise<Sound> {
  if (!(await track.canDecode())) throw new KinoraError('AUDIO_UNREADABLE');
  const sampleRate = await track.getSampleRate();
  const most = Math.round(seconds * sampleRate);
  const channels = Array.from(
    { length: await track.getNumberOfChannels() },
    () => new Float32Array(most),
  );
  let length = 0;
  for await (const sample of new AudioSampleSink(track).samples(start, start + seconds)) {
    const at = Math.round((sample.timestamp - start) * sampleRate);
    const frameOffset = Math.max(0, -at);
    const first = Math.max(0, at);
    const frameCount = Math.min(sample.numberOfFrames - frameOffset, most - first);
    if (frameCount > 0) {
      for (const [planeIndex, channel] of channels.entries()) {
        const target = channel.subarray(first, first + frameCount);
        sample.copyTo(target, { planeIndex, format: 'f32-planar', frameOffset, frameCount });
      }
      length = first + frameCount;
    }
    sample.close();
    signal.throwIfAborted();
  }
  if (length === 0) {
    throw new KinoraError('AUDIO_UNREADABLE', `The audio ends before ${start} s.`, {
      remedy: 'Let it start earlier.',
    });
  }
  return { sampleRate, channels: channels.map((channel) => channel.subarray(0, length)) };
}

/** An MP4 of `seconds` of sound: looped or not, with its fades, in AAC-LC of at most two channels. */
async function encodeAac(
  { sampleRate, channels }: Sound,
  seconds: number,
  { fadeIn, fadeOut, loop }: SoundSettings,
  signal: AbortSignal,
): Promise<Blob> {
  // The rates that each browser encodes.
  const format = {
    sampleRate: sampleRate === 44_100 ? 44_100 : 48_000,
    numberOfChannels: Math.min(2, channels.length),
  };
  if (!(await canEncodeAudio('aac', { ...encoding, ...format }))) {
    const { registerAacEncoder } = await import('@mediabunny/aac-encoder');
    registerAacEncoder();
  }
  const available = channels[0]?.length ?? 0;
  const total = loop ? Math.round(seconds * sampleRate) : available;
  const gain = (index: number) => {
    const rise = fadeIn > 0 ? Math.min(1, index / (fadeIn * sampleRate)) : 1;
    const fall = fadeOut > 0 ? Math.min(1, (total - index) / (fadeOut * sampleRate)) : 1;
    return rise * fall;
  };
  return writeMp4(async (output) => {
    const source = new AudioSampleSource({ ...encoding, transform: format });
    output.addAudioTrack(source);
    await output.start();
    for (let first = 0; first < total; first += sampleRate) {
      signal.throwIfAborted();
      const length = Math.min(sampleRate, total - first);
      const data = new Float32Array(length * channels.length);
      for (const [number, channel] of channels.entries()) {
        for (let i = 0; i < length; i++) {
          const amplitude = channel[(first + i) % available] as number;
          data[number * length + i] = amplitude * gain(first + i);
        }
      }
      const sample = new AudioSample({
        data,
        format: 'f32-planar',
        numberOfChannels: channels.length,
        sampleRate,
        timestamp: first / sampleRate - packetLength / format.sampleRate,
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
    const tags = await input.getMetadataTags();
    return await writeMp4(async (output) => {
      const pictures = new EncodedVideoPacketSource('avc');
      const sounds = new EncodedAudioPacketSource('aac');
      output.addVideoTrack(pictures, { frameRate });
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
    // What ended the output first is the reason.
    await output.cancel().catch(() => {});
    throw thrown;
  }
  if (!target.buffer) throw new Error('it gave no data');
  return new Blob([target.buffer], { type: 'video/mp4' });
}
