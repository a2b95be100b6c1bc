import type { Graph } from '../graph';
import { type Bindings, elementCount } from './backend';

/** Bytes of results that are read together: four frames of 1280×704 take 41 MiB. */
const mostTogether = 2 ** 26;

/** Whether the results of a graph are read together, with one wait, or one after another, as each takes a buffer. */
export function readsTogether({ outputs }: Graph): boolean {
  const counts = [...outputs.values()].map(({ dims }) => elementCount(dims.map(Number)));
  return 4 * counts.reduce((sum, count) => sum + count, 0) <= mostTogether;
}

/** Weights of the layers of graphs of images, by `weightsKey`. */
export type ImageWeights = ReadonlyMap<string, Bindings>;

/**
 * What computes graphs of images on a device: the runtime, or kernels of our own. The state of causal layers stays
 * between graphs, by the layers' names.
 */
export interface ImageExecutor {
  /**
   * Computes a graph. Its results are copied as they come, and waited for once where they are small.
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
