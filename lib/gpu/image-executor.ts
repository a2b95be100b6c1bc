import { type Graph, type ImageMatch, imagesOf, matchImages, type Value } from '../graph';
import { type Bindings, elementCount } from './backend';

/** Bytes of results that are read together: four frames of 1280×704 take 41 MiB. */
const mostTogether = 2 ** 26;

/** Whether the results of a graph are read together, with one wait, or one after another, as each takes a buffer. */
export function readsTogether({ outputs }: Graph): boolean {
  const counts = [...outputs.values()].map(({ dims }) => elementCount(dims.map(Number)));
  return 4 * counts.reduce((sum, count) => sum + count, 0) <= mostTogether;
}

/** In which order a graph of images is computed, and how long each image is needed. */
interface ImageSchedule {
  readonly matches: readonly ImageMatch[];
  readonly results: ReadonlySet<Value>;
  /** By image: the last match that reads it. */
  readonly lastReads: ReadonlyMap<Value, ImageMatch>;
}
const schedules = new WeakMap<Graph, ImageSchedule>();

/** The schedule of a graph; each latent frame runs through the same one. */
export function scheduleOf(graph: Graph): ImageSchedule {
  const known = schedules.get(graph);
  if (known) return known;
  const matches = matchImages(graph);
  const results = new Set([...graph.outputs.values()].map(({ value }) => value));
  const lastReads = new Map<Value, ImageMatch>();
  for (const match of matches) for (const image of imagesOf(match)) lastReads.set(image, match);
  const schedule = { matches, results, lastReads };
  schedules.set(graph, schedule);
  return schedule;
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
