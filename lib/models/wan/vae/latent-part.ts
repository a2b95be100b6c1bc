import { at } from '../../../contract';
import type { Backend } from '../../../gpu';
import type { Graph } from '../../../graph';
import type { VaeConfig } from '../config-schemas';
import { denormalised, type VaeDecoderOptions } from './decoder';
import { openImages } from './vae-executor';
import { latentGraphs } from './vae-network';
import type { VaeCheckpoint } from './vae-weights';

/** What the decoder makes of one latent frame before it upsamples, [h·w, C] each. */
export interface LatentFeatures {
  /** From the middle block, where a shortcut of the first level starts. */
  readonly middle: Float32Array;
  /** From the first level's residual blocks behind it. */
  readonly main: Float32Array;
}

/**
 * Runs the part of the decoder that works on latent positions: one group of layers through the whole clip, then
 * the next, so that the weights and the past of one group are on the device at a time.
 * Frees everything when it returns or throws.
 */
export async function runLatentPart(
  backend: Backend,
  config: VaeConfig,
  checkpoint: VaeCheckpoint,
  latentFrames: readonly Float32Array[],
  options: VaeDecoderOptions,
): Promise<LatentFeatures[]> {
  const { latentHeight, latentWidth } = options;
  const graphs = latentGraphs(config, latentHeight, latentWidth);
  const frames = latentFrames.map((frame) => denormalised(frame, config));

  /** Replaces each frame by the graph's result, so that main memory has one clip and a frame. */
  async function through(graph: Graph): Promise<void> {
    const images = await openImages(backend, [graph], checkpoint, options);
    try {
      for (const [f, x] of frames.entries()) {
        for await (const y of images.frames(graph, { x })) frames[f] = y;
      }
    } finally {
      images.dispose();
    }
  }

  for (const graph of graphs.middle) await through(graph);
  const middle = [...frames];
  for (const graph of graphs.main) await through(graph);
  return frames.map((main, f) => ({ main, middle: at(middle, f) }));
}
