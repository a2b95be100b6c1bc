import { type Backend, relativeRms } from '../../../../gpu';
import {
  add,
  causal,
  channelNorm,
  convolution,
  depthwise,
  Graph,
  pixelAttention,
  relu,
  relu6,
  repeat,
  silu,
  upsample,
} from '../../../../graph';
import { openImages } from '../vae-executor';

/** Tensors of {@link oddGraph}. */
const shapes: Readonly<Record<string, readonly number[]>> = {
  'a.weight': [11, 5, 3, 3, 3],
  'b.weight': [11, 11, 3, 3],
  's.weight': [11, 5, 1, 1],
  'qkv.weight': [33, 11, 1, 1],
  'proj.weight': [11, 11, 1, 1],
  'f.weight': [11, 1, 3, 3],
  'h.weight': [11, 1, 3, 3],
  'd.weight': [6, 11, 3, 3],
  'e.weight': [3, 6, 3, 3],
  'n0.gamma': [5],
  'n1.gamma': [11],
  'n2.gamma': [11],
};

/** Every kind of match that kernels for the CPU compute, with sizes that are no multiples of a tile. */
function oddGraph(): Graph {
  const g = new Graph('odd images');
  const x = g.input('x', [10, 14, 5]);
  const a = causal(silu(channelNorm(x, 'n0')), 'a', 11);
  const shortcut = convolution(x, 's', 11, { kernel: 1 });
  const b = add(convolution(silu(channelNorm(a, 'n1')), 'b', 11), shortcut);
  const normed = channelNorm(b, 'n2');
  const [q, k, v] = [0, 1, 2].map((index) =>
    convolution(normed, 'qkv', 11, { kernel: 1, part: { index, of: 3 } }),
  );
  if (!q || !k || !v) throw new TypeError('An attention has three operands.');
  const attended = convolution(pixelAttention(q, k, v), 'proj', 11, { kernel: 1 });
  const filtered = depthwise(relu6(depthwise(add(b, attended), 'f')), 'h', 2);
  const d = relu(convolution(filtered, 'd', 6));
  g.output('small', d);
  g.output(
    'large',
    add(convolution(upsample(d), 'e', 3), repeat(d, 3, { time: 1, factorTime: 2 })),
  );
  return g;
}

/** Numbers between −1 and 1 that follow from a name. */
function numbers(name: string, count: number): Float32Array<ArrayBuffer> {
  let state = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

/** Relative errors of the results of three frames, against the runtime. */
export async function oddImageErrors(backend: Backend): Promise<readonly number[]> {
  const shape = (name: string) =>
    shapes[name] ?? shapes[name.replace('bias', 'weight')]?.slice(0, 1) ?? [];
  const read = async (name: string) =>
    numbers(
      name,
      shape(name).reduce((product, size) => product * size, 1),
    );
  const checkpoint = { has: () => false, shape, read, readRows: read, bytes: () => 0 };
  const graph = oddGraph();
  const compute = async (runtimeOnly: boolean) => {
    backend.runtimeOnly = runtimeOnly;
    const images = await openImages(backend, [graph], checkpoint, {});
    const results: Float32Array[] = [];
    for (const frame of [0, 1, 2]) {
      const inputs = { x: numbers(`frame ${frame}`, 10 * 14 * 5) };
      for await (const result of images.frames(graph, inputs)) results.push(result);
    }
    images.dispose();
    return results;
  };
  const [ours, theirs] = [await compute(false), await compute(true)];
  return ours.map((result, i) => relativeRms(result, theirs[i] ?? new Float32Array(0)));
}
