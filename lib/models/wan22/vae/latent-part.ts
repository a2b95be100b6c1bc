import { at } from '../../../contract';
import { type Backend, Scope } from '../../../gpu';
import { decoderBlocks, type VaeConfig } from '../config';
import type { Image } from './bands';
import { denormalised, type VaeDecoderOptions } from './decoder';
import { openLoader } from './kernel-network';
import { Workspace } from './layers';
import type { LayerLoader } from './network';
import type { VaeCheckpoint } from './weights';

/** What the decoder makes of one latent frame before it upsamples, [h·w, C] each. */
export interface LatentFeatures {
  /** From the middle block; the first level's shortcut starts there. */
  readonly middle: Float32Array;
  /** From the first level's residual blocks behind it. */
  readonly main: Float32Array;
}

/** A layer on frames of latent size; its input returns to the pool. */
type Layer = (x: Image) => Promise<Image>;

/**
 * Runs the part of the decoder that works on latent positions: one layer through the whole clip, then
 * the next, so that one layer's weights and past are on the device at a time. Frees
 * everything when it returns or throws.
 */
export async function runLatentPart(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  latentFrames: readonly Float32Array[],
  options: VaeDecoderOptions,
): Promise<LatentFeatures[]> {
  const { latentHeight, latentWidth, signal } = options;
  const workspace = new Workspace(backend, options.bandBytes);
  const { scratch } = workspace;

  /** Replaces each frame by the layer's result, so that main memory has one clip and a frame. */
  async function through(
    frames: Float32Array[],
    load: (parts: LayerLoader) => Promise<Layer>,
  ): Promise<void> {
    const scope = new Scope(backend);
    try {
      const layer = await load(await openLoader(workspace, scope, config, checkpoint, options));
      for (const [f, frame] of frames.entries()) {
        signal?.throwIfAborted();
        const channels = frame.length / (latentHeight * latentWidth);
        const x = workspace.image(latentHeight, latentWidth, channels);
        backend.write(x, frame);
        const y = await layer(x);
        frames[f] = await backend.read(y);
        scratch.give(y);
        await backend.settle();
      }
    } finally {
      scope.dispose();
      workspace.caches.dispose();
    }
  }

  const { z_dim: z } = config;
  const first = at(decoderBlocks(config), 0);
  const { in_dim: top, out_dim: channels } = first;
  const residual = (name: string, inputs: number, filters: number) => (parts: LayerLoader) =>
    parts.residualBlock(name, inputs, filters).then(
      (block): Layer =>
        (x) =>
          block.step(x, false),
    );
  const middleName = 'decoder.mid_block';
  try {
    const frames = latentFrames.map((frame) => denormalised(frame, config));
    await through(frames, async (parts) => {
      const postQuant = await parts.pointwise('post_quant_conv', z, z);
      const convIn = await parts.convolution('decoder.conv_in', z, top);
      return async (x) => {
        const quantised = await postQuant.step(x);
        const y = await convIn.step(quantised);
        scratch.give(x, quantised);
        return y;
      };
    });
    await through(frames, residual(`${middleName}.resnets.0`, top, top));
    await through(frames, async (parts) => {
      const attention = await parts.attention(`${middleName}.attentions.0`, top);
      return (x) => attention.step(x, false);
    });
    await through(frames, residual(`${middleName}.resnets.1`, top, top));
    const middle = [...frames];
    for (let i = 0; i < first.resnets; i++) {
      const inputs = i === 0 ? top : channels;
      await through(frames, residual(`${first.name}.resnets.${i}`, inputs, channels));
    }
    return frames.map((main, f) => ({ main, middle: at(middle, f) }));
  } finally {
    workspace.dispose();
  }
}
