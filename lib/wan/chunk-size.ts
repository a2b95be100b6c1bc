import { type Backend, Scope } from '../gpu';
import { GraphBuilder, multiHeadAttention } from '../onnx';
import { type TransformerConfig, transformerDim } from './config';

/** About the longest time that one dispatch may take: longer ones lose the device on some systems. */
const dispatchSeconds = 0.3;
/** Attention kernels work on tiles of this many queries. */
const queryTile = 64;
/** More tokens per chunk gain nothing and cost memory: the feed-forward's hidden layer grows. */
const mostTokens = 4096;

/**
 * Tokens whose attention over `keys` tokens takes about 0.3 s, in whole tiles of 64
 * (reference `onnxruntime-web.md` §3.2: 4·L·S·D FLOP per call).
 */
export function queryChunkTokens(
  config: TransformerConfig,
  keys: number,
  flopsPerSecond: number,
): number {
  const flopsPerTile = queryTile * 4 * keys * transformerDim(config);
  const tiles = Math.round((dispatchSeconds * flopsPerSecond) / flopsPerTile);
  return Math.min(mostTokens, queryTile * Math.max(1, tiles));
}

/**
 * Measures what this device's attention kernel sustains on the clip's own keys, and derives the chunk
 * size from it. Takes the memory of the keys and values for a moment; call it before the clip's own.
 *
 * @param keys tokens of the clip
 */
export async function measureChunkTokens(
  backend: Backend,
  config: TransformerConfig,
  keys: number,
): Promise<number> {
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
