import { type ColourChange, type ColourCorrection, framesInFile } from '../contract';
import type { Backend } from '../gpu';
import { ColourKeeper, ColourStatistics, recoloured } from './colour';
import { goingOn, type PictureFades } from './key-frames';
import { type Frame, type LatentSize, requireFinite } from './latents';
import type { MemoryFit } from './memory/fit';
import type { TileProgress, VideoModel } from './model';
import type { ImageToVideoHooks, ImageToVideoRequest } from './request';

/** A clip to decode, and with what. */
export interface ClipDecode {
  readonly backend: Backend;
  readonly model: VideoModel;
  readonly size: LatentSize;
  /** [C, F, h, w] */
  readonly latents: Float32Array;
  readonly decoder: ImageToVideoRequest['decoder'];
  readonly memory: MemoryFit;
  readonly hooks: Pick<ImageToVideoHooks, 'control' | 'onProgress'>;
  /** Frees what one pass left on the device. */
  readonly endStage: () => Promise<void>;
}

/**
 * The frames of a clip, in their order. Where memory runs out it starts again in smaller tiles and skips the frames
 * that it has handed out already.
 *
 * @throws KinoraError `LATENTS_NOT_FINITE` naming the frame, `OUT_OF_MEMORY` where the smallest tiles do not fit; the
 *   signal's reason; what the files and the device throw
 */
export async function* decodeClip(clip: ClipDecode): AsyncGenerator<Frame> {
  const { backend, model, size, latents, decoder, memory, hooks } = clip;
  const { signal } = hooks.control;
  const { space, time } = model.latents.strides;
  const [width, height] = [size.width * space, size.height * space];
  const frames = 1 + (size.frames - 1) * time;
  const onTile = (progress: TileProgress) =>
    hooks.onProgress({ type: 'tile', ...progress, frames });
  let framesDone = 0;
  for (let done = false; !done; ) {
    await memory.freeSessionsFor('decode');
    const { tiles } = memory.plan;
    try {
      let index = 0;
      const decodeOptions = { size, latents, decoder, tiles, signal, onTile };
      for await (const data of model.decode(backend, decodeOptions)) {
        signal.throwIfAborted();
        requireFinite(data, `Frame ${index + 1} of the decoded clip`);
        index += 1;
        if (index <= framesDone) continue;
        framesDone = index;
        yield { data, width, height };
      }
      done = true;
    } catch (error) {
      await memory.shrinkDecode(error);
    } finally {
      await clip.endStage();
    }
  }
}

/** Frames that are decoded as one sequence. */
export interface DecodedSequence {
  readonly clip: number;
  /** How many it has. */
  readonly frames: number;
  /** Frames at its start that were handed out before: of the clip before, or of an earlier video. */
  readonly repeated: number;
  /** Whether it goes on from the last picture of what was shown before. */
  readonly fromPicture: boolean;
  /** Whether no other one follows. */
  readonly isEnd: boolean;
}

/** Hands out the decoded frames of a video, as they are shown: with the colours and the pictures that they go on from. */
export class VideoOutput {
  /** The last frame that was shown: the next clip begins from it. */
  start: Frame;
  /** Frames that were handed out. */
  framesDone = 0;
  /** How colours of the latents are changed when they are shown. */
  change: ColourChange | null;
  readonly corrections: ColourCorrection[] = [];
  /** Frames of the whole video. */
  readonly frameCount: number;
  /** Colours of the last second of the clip before. */
  #lastSecond: ColourStatistics | null = null;

  /**
   * @param second frames in one
   * @param faded frames in which what a clip takes over of the one before fades out
   */
  constructor(
    readonly request: ImageToVideoRequest,
    readonly hooks: Pick<ImageToVideoHooks, 'onFrame' | 'onProgress'>,
    readonly pictures: PictureFades,
    readonly second: number,
    readonly faded: number,
  ) {
    this.start = request.image;
    this.change = request.before?.colours ?? null;
    this.frameCount = framesInFile(request.frames, { loop: request.loop });
  }

  /** Shows a sequence. */
  async take(decoded: AsyncIterable<Frame>, sequence: DecodedSequence): Promise<void> {
    const { clip, frames, repeated, fromPicture, isEnd } = sequence;
    const { keepsColours = true } = this.request;
    const { second, start: last } = this;
    const before = this.#lastSecond;
    const keeper =
      fromPicture && keepsColours ? new ColourKeeper({ last, before, frames, second }) : null;
    this.#lastSecond = isEnd || !keepsColours ? null : new ColourStatistics();
    let first: Frame | undefined;
    let index = 0;
    for await (const each of decoded) {
      let frame = keeper?.next(each, index) ?? (this.change ? recoloured(each, this.change) : each);
      first ??= frame;
      if (fromPicture) frame = goingOn(last, first, frame, index, this.faded);
      const isRepeated = index < repeated;
      if (!isRepeated) frame = this.pictures.next(frame, this.framesDone);
      this.start = frame;
      if (index >= frames - second) this.#lastSecond?.add(frame);
      index += 1;
      if (!isRepeated) await this.#handOut(frame);
    }
    if (!keeper) return;
    this.corrections.push({ clip, ...keeper.found });
    this.change = keeper.found.encoding;
  }

  async #handOut(frame: Frame): Promise<void> {
    // It closes the loop.
    if (this.framesDone === this.frameCount) return;
    await this.hooks.onFrame(frame);
    this.framesDone += 1;
    this.hooks.onProgress({ type: 'frame', frame: this.framesDone, frames: this.frameCount });
  }
}
