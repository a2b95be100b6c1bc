import type { Backend } from '../gpu';
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
