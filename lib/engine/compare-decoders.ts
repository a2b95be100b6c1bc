import type { DecoderComparison } from '../contract';
import type { Backend } from '../gpu';
import { type Frame, joinLatents, latentSizeOf } from '../pipeline/latents';
import type { VideoModel } from '../pipeline/model';

/**
 * Encodes frames with the VAE and decodes them with every decoder of the model, side by side: no more than a frame of
 * each is held.
 *
 * @param frames of the model's size, one more than a multiple of its stride
 */
export async function compareDecoders(
  model: VideoModel,
  backend: Backend,
  frames: readonly Frame[],
  signal: AbortSignal,
): Promise<DecoderComparison[]> {
  const { width = 0, height = 0 } = frames[0] ?? {};
  const size = latentSizeOf(model.latents, { width, height, frames: frames.length });
  const latents = joinLatents(await model.encodeFrames(backend, frames, signal), size);
  const clip = { size, latents, tiles: 'full', signal, onTile: () => undefined } as const;
  const runs = model.decoders.map((decoder) => ({
    decoder,
    frames: model.decode(backend, { ...clip, decoder }),
    seconds: 0,
    squares: 0,
  }));
  try {
    for (const _ of frames) {
      let full: Float32Array | undefined;
      for (const run of runs) {
        const start = performance.now();
        const { value = new Float32Array() } = await run.frames.next();
        run.seconds += (performance.now() - start) / 1000;
        full ??= value;
        run.squares += value.reduce((sum, v, i) => sum + (v - (full?.[i] ?? 0)) ** 2, 0);
      }
    }
  } finally {
    for (const run of runs) await run.frames.return();
  }
  const count = frames.length * 3 * width * height;
  // From −1 to 1.
  const psnr = (squares: number) => 10 * Math.log10((4 * count) / squares);
  return runs.map(({ decoder, seconds, squares }) => {
    return { decoder, seconds, psnr: decoder === 'full' ? null : psnr(squares) };
  });
}
