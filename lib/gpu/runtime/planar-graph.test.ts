import { afterAll, expect, test } from 'vitest';
import {
  channelsOf,
  concat,
  convolution,
  Graph,
  matchImages,
  resize,
  upsample,
  type Value,
  warp,
} from '../../graph';
import { nodeBackend } from '../../models/wan/testing/model';
import { Scope } from '../backend';
import { planarGraph } from './planar-graph';

const backend = nodeBackend();
afterAll(() => backend.dispose());

/** An image of 2 rows and 3 columns, and what a network makes of it. */
async function result(
  inputs: Readonly<Record<string, readonly number[]>>,
  network: (of: (name: string, channels: number) => Value) => Value,
) {
  const graph = new Graph('test');
  const sizes: Record<string, readonly number[]> = {};
  const y = network((name, channels) => {
    sizes[name] = [1, channels, 2, 3];
    return graph.input(name, [2, 3, channels]);
  });
  graph.output('y', y);
  const [height = 0, width = 0, channels = 0] = y.dims.map(Number);
  const scope = new Scope(backend);
  const bound = Object.entries(inputs).map(([name, values]) => {
    return [
      name,
      scope.float32(sizes[name] ?? [values.length], 'activations', Float32Array.from(values)),
    ];
  });
  const out = scope.float32([1, channels, height, width], 'activations');
  await backend.run(planarGraph(graph), Object.fromEntries(bound), { y: out });
  const values = await backend.read(out);
  scope.dispose();
  return [...values];
}

const image = [1, 2, 3, 4, 5, 6];

test('a flow says how many columns and rows further a pixel is read, and an edge goes on', async () => {
  const flow = [...Array<number>(12).fill(9), 1, 1, 1, 1, 1, 0.5, 0, 0, 0, 1, 0, -1];
  const y = await result({ image, flow }, (of) => warp(of('image', 1), of('flow', 4), 2));
  // Columns +1, +1, +1 of the first row; of the second +1 with a row below the last, +1, and +½ with a row above.
  for (const [i, value] of [2, 3, 3, 5, 6, 3].entries()) expect(y[i]).toBeCloseTo(value, 5);
});

test('channels are joined, picked and resized', async () => {
  const y = await result({ image }, (of) => {
    const x = of('image', 1);
    return resize(channelsOf(concat(x, x, x), 1, 2), 2);
  });
  expect(y.slice(0, 6)).toEqual([1, 1.25, 1.75, 2.25, 2.75, 3]);
});

test('other executors refuse what only planar graphs compute, and planar graphs what others compute', () => {
  const graph = new Graph('network');
  const x = graph.input('x', [4, 4, 8]);
  const flow = graph.input('flow', [4, 4, 4]);
  graph.output('y', convolution(warp(x, flow, 0), 'layer', 8));
  expect(() => matchImages(graph)).toThrow('network: warp stands where it is not computed');
  const centred = new Graph('centred');
  const strided = { stride: 2, around: true } as const;
  centred.output('y', convolution(centred.input('x', [4, 4, 8]), 'layer', 8, strided));
  expect(() => matchImages(centred)).toThrow('convolution stands where it is not computed');
  const other = new Graph('other');
  other.output('y', convolution(upsample(other.input('x', [4, 4, 8])), 'layer', 8));
  expect(() => planarGraph(other)).toThrow('other: upsample is not emitted for planar images');
});
