import { type Backend, kernelSet, Scope } from '../../gpu';
import { GraphBuilder, multiHeadAttention } from '../../onnx';
import { type TransformerConfig, transformerDim } from './config-schemas';

/** About the longest time that one dispatch may take: longer ones lose the device on some systems. */
const dispatchSeconds = 0.3;
/** Attention kernels work on tiles of this many queries. */
const queryTile = 64;
/** More tokens per chunk gain nothing and cost memory: the feed-forward's hidden layer grows. */
export const mostTokens = 4096;
/** Fewer tokens per chunk save next to nothing: 2 % of the 5B's least memory. */
const fewestPlanned = 512;

/**
 * Tokens whose attention over `keys` tokens takes about 0.3 s (4·L·S·D FLOP per call): a power of two
 * of at least one tile of 64, at most 4096.
 *
 * The steps are that coarse because the rate comes from a measurement, which is a little different
 * each time: the same device is to come to the same size.
 */
export function queryChunkTokens(
  config: TransformerConfig,
  keys: number,
  flopsPerSecond: number,
): number {
  const flopsPerTile = queryTile * 4 * keys * transformerDim(config);
  const tiles = (dispatchSeconds * flopsPerSecond) / flopsPerTile;
  return Math.min(mostTokens, queryTile * 2 ** Math.max(0, Math.round(Math.log2(tiles))));
}

/**
 * Smaller chunks that a memory plan may choose instead, in falling order. They give the same numbers
 * bit for bit: a row of a matrix product or of attention does not depend on how many others come with
 * it. The one exception are fewer than 32 queries, for which attention has another kernel.
 */
export function chunkLadder(tokens: number): number[] {
  const ladder = [];
  for (let size = tokens / 2; size >= fewestPlanned; size /= 2) ladder.push(size);
  return ladder;
}

/** Measurements by device and by request. */
const measured = new WeakMap<Backend, Map<string, Promise<number>>>();

/**
 * Measures what this device's attention kernel sustains on the clip's own keys, and derives the chunk
 * size from it; once per device, so that a run can be repeated with the same numbers. Takes the memory
 * of the keys and values for a moment; call it before the clip's own. The CPU has no dispatch that
 * could take too long and gets the largest chunks: its kernels unpack all weights at every call. So do
 * kernels of our own: what runs them bounds a dispatch itself.
 *
 * @param keys tokens of the clip
 */
export async function measureChunkTokens(
  backend: Backend,
  config: TransformerConfig,
  keys: number,
): Promise<number> {
  if (backend.kind === 'wasm' || kernelSet(backend.kernels)) return mostTokens;
  const known = measured.get(backend) ?? new Map<string, Promise<number>>();
  measured.set(backend, known);
  const key = [config.num_attention_heads, config.attention_head_dim, keys].join();
  const cached = known.get(key);
  if (cached) return cached;
  const measuring = measure(backend, config, keys);
  known.set(key, measuring);
  // A measurement that failed tells nothing: the next run tries again.
  measuring.catch(() => known.delete(key));
  return measuring;
}

async function measure(backend: Backend, config: TransformerConfig, keys: number): Promise<number> {
  const d = transformerDim(config);
  const rows = Math.min(256, keys);
  const g = new GraphBuilder('attention-probe');
  const q = g.input('q', 'float32', [1, 'L', d]);
  const k = g.input('k', 'float32', [1, 'S', d]);
  const v = g.input('v', 'float32', [1, 'S', d]);
  const scale = 1 / Math.sqrt(config.attention_head_dim);
  g.output('y', multiHeadAttention(q, k, v, { heads: config.num_attention_heads, scale }));
  const graph = g.build();
  const scope = new Scope(backend);
  try {
    const inputs = {
      q: scope.float32([1, rows, d], 'activations'),
      k: scope.float32([1, keys, d], 'activations'),
      v: scope.float32([1, keys, d], 'activations'),
    };
    const y = scope.float32([1, rows, d], 'activations');
    // The first run compiles.
    await backend.run(graph, inputs, { y });
    await backend.settle();
    const start = performance.now();
    await backend.run(graph, inputs, { y });
    await backend.settle();
    const seconds = Math.max(1e-4, (performance.now() - start) / 1000);
    return queryChunkTokens(config, keys, (4 * rows * keys * d) / seconds);
  } finally {
    scope.dispose();
  }
}
