import type { Graph } from '../graph';
import type { Bindings } from './backend';

/** Weights of the layers of graphs of images, by `weightsKey`. */
export type ImageWeights = ReadonlyMap<string, Bindings>;

/**
 * What computes graphs of images on a device: the runtime, or kernels of our own. What causal layers know of the past
 * stays between graphs, by the layers' names.
 */
export interface ImageExecutor {
  /**
   * Computes a graph. Each result leaves before what is behind it is computed.
   *
   * @param inputs [H, W, C] each, by name
   * @returns its outputs in order, [H, W, C] each
   * @throws the signal's reason soon after it aborts
   * @throws KinoraError `OUT_OF_MEMORY`, `DEVICE_LOST`
   */
  frames(
    graph: Graph,
    inputs: Readonly<Record<string, Float32Array>>,
  ): AsyncGenerator<Float32Array<ArrayBuffer>, void, undefined>;
  /** Starts a new clip: forgets all frames so far, and a graph that was left half computed. */
  reset(): void;
  /** Frees everything but the weights. */
  dispose(): void;
}
