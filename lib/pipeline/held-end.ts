import { at } from '../contract';
import type { Backend } from '../gpu';
import { type Frame, joinLatents, latentSizeOf } from './latents';
import type { VideoModel } from './model';

/** How the frames of a clip's last latent frame look where another one was put in its place. */
export interface HeldEnd {
  /** PSNR with the clip's frames, in dB. */
  readonly psnr: number;
  /** By how much the change of mean brightness into these frames differs from the clip's, in levels of 255. */
  readonly step: number;
}

/** By the latent frame that is held as a clip's end. */
export interface HeldEnds {
  /** The clip's own: what the VAE alone loses. */
  readonly own: HeldEnd;
  /** Of the last picture alone, as for a first frame: what key frames use. */
  readonly alone: HeldEnd;
  /** The second one of a clip that shows the last picture only: one with a past. */
  readonly repeated: HeldEnd;
}

/**
 * Which latent frame shows a picture best at the end of a clip, by the VAE alone: a clip is encoded, its last latent frame
 * is replaced, and the frames that are decoded of it are compared with the clip's.
 *
 * @param frames of a clip with motion, one more than a multiple of the latent stride
 */
export async function measureHeldEnds(
  backend: Backend,
  model: VideoModel,
  frames: readonly Frame[],
  signal: AbortSignal,
): Promise<HeldEnds> {
  const stride = model.latents.strides.time;
  const last = at(frames, frames.length - 1);
  const size = latentSizeOf(model.latents, { ...last, frames: frames.length });
  const clip = await model.encodeFrames(backend, frames, signal);
  const expected = frames.slice(-1 - stride).map(({ data }) => data);
  const measure = async (end: Float32Array): Promise<HeldEnd> => {
    const latents = joinLatents([...clip.slice(0, -1), end], size);
    const shown: Float32Array[] = [];
    for await (const frame of model.decode(backend, {
      size,
      latents,
      decoder: 'full',
      tiles: 'full',
      signal,
      onTile: () => undefined,
    })) {
      shown.push(frame);
    }
    await backend.trim();
    return compared(expected, shown.slice(-1 - stride));
  };
  const still = new Array<Frame>(1 + stride).fill(last);
  return {
    own: await measure(at(clip, clip.length - 1)),
    alone: await measure(at(await model.encodeFrames(backend, [last], signal), 0)),
    repeated: await measure(at(await model.encodeFrames(backend, still, signal), 1)),
  };
}

/** Frames in −1…1; the first one stands before those that are compared. */
function compared(expected: readonly Float32Array[], shown: readonly Float32Array[]): HeldEnd {
  const squares = expected
    .slice(1)
    .map((frame, f) =>
      mean(frame.map((value, i) => (value - (at(shown, f + 1)[i] as number)) ** 2)),
    );
  const stepOf = (all: readonly Float32Array[]) => mean(at(all, 1)) - mean(at(all, 0));
  return {
    // The values reach over 2.
    psnr: Math.min(100, 10 * Math.log10(4 / mean(squares))),
    step: Math.abs(stepOf(shown) - stepOf(expected)) * 127.5,
  };
}

function mean(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return sum / values.length;
}
