import { expect, test } from 'vitest';
import {
  add,
  attention,
  Graph,
  gatherHeads,
  gelu,
  layerNorm,
  linear,
  modulate,
  mul,
  rmsNorm,
  row,
  sub,
  type Value,
} from '../../graph';
import type { Dispatch } from '../kernels';
import { type CompileOptions, Program, Refusal } from '.';
import { block, fastOptions, layer, matrixOptions, oneHead, options, width } from './testing/block';
import { wrongAccesses } from './testing/provenance';

function listed(program: Program): Dispatch[] {
  return [...program.listWithoutDevice()].flatMap(([, jobs]) => jobs);
}

test('a graph becomes dispatches: tables by class, then a pass for the keys and one for the queries', () => {
  const program = new Program([block()], options);
  const families = listed(program).map(({ kernel }) => kernel.name.split(' ')[0]);
  const keys = ['layer', 'linear', 'head', 'linear', 'head'];
  const queries = ['layer', 'linear', 'attention', 'linear'];
  const { chunks } = options;
  expect(families).toEqual([
    ...['sum', 'sum'],
    ...chunks.flatMap(() => keys),
    ...chunks.flatMap(() => queries),
  ]);
  expect(program.kernels.size).toBe(new Set(listed(program).map(({ kernel }) => kernel)).size);
});

test.each([
  ['exact', options],
  ['fast', fastOptions],
  ['matrix', matrixOptions],
  ['one head at a time', oneHead(options)],
  ['fast, one head at a time', oneHead(fastOptions)],
  ['matrix, one head at a time', oneHead(matrixOptions)],
  ['in f32', { ...options, kernels: { ...options.kernels, storage: 'f32' } }],
] as const)('%s: every read sees what was written for it', (_, of) => {
  const program = new Program([block()], of);
  // A second run finds the memory as the first one left it.
  expect(wrongAccesses([...listed(program), ...listed(program)])).toEqual([]);
});

test('tokens attend to each other on matrix units where the rows are f16', () => {
  const attentions = (of: CompileOptions) =>
    new Set(
      listed(new Program([block()], of))
        .map(({ kernel }) => kernel.name.replace(/ f\d.*/, ''))
        .filter((name) => name.includes('attention')),
    );
  expect(attentions(matrixOptions)).toEqual(new Set(['matrix attention']));
  const { kernels } = matrixOptions;
  expect(attentions({ ...matrixOptions, kernels: { ...kernels, storage: 'f32' } })).toEqual(
    new Set(['attention']),
  );
});

test('a lifetime that is too short is found', () => {
  const program = new Program([block()], options);
  const [largest] = program.slots.toSorted((a, b) => b.bytes - a.bytes);
  const other = program.slots.find((slot) => slot !== largest && slot.bin !== largest?.bin);
  if (!largest || !other) throw new Error('there is one slot only');
  largest.bin = other.bin;
  largest.byteOffset = other.byteOffset;
  expect(wrongAccesses(listed(program))).not.toEqual([]);
});

test('rows of a text: norms of their own, a bias per head, and a product of two layers', () => {
  const g = new Graph('encoder');
  const x = g.input('x', ['T', width]);
  const norm = g.input('norm', [width]);
  const bias = gatherHeads(g.input('table', [32, 2]), g.input('buckets', ['T', 'T']));
  const y = rmsNorm(x, norm, 1e-6);
  const [q, k, v] = [linear(y, layer('q')), linear(y, layer('k')), linear(y, layer('v'))];
  const after = add(x, linear(attention(q, k, v, { heads: 2, scale: 1, bias }), layer('out')));
  const z = rmsNorm(after, norm, 1e-6);
  const inner = mul(gelu(linear(z, layer('gate'))), linear(z, layer('up')));
  g.update(x, add(after, linear(inner, layer('down'))));
  const kernels = { ...options.kernels, storage: 'f32' } as const;
  const program = new Program([g], { ...options, kernels, sizes: { T: 20 } });
  const names = listed(program).map(({ kernel }) => kernel.name);
  const short = names.map((name) => /^(gather|head rows rms|attention|linear)/.exec(name)?.[0]);
  const linears = (count: number) => Array.from({ length: count }, () => 'linear');
  expect(short).toEqual([
    ...['gather', 'head rows rms', ...linears(3), 'attention'],
    ...['linear', 'head rows rms', ...linears(3)],
  ]);
  expect(names.at(-2)).toContain(' times,');
  expect(wrongAccesses([...listed(program), ...listed(program)])).toEqual([]);
  // What the product replaces may not be read again.
  const h = new Graph('again');
  const a = rmsNorm(h.input('x', ['T', width]), h.input('norm', [width]), 1e-6);
  h.output('y', add(mul(a, linear(a, layer('b'))), a));
  expect(() => new Program([h], { ...options, kernels, sizes: { T: 20 } })).toThrow(
    'again: mul would replace a value that is still needed',
  );
});

function graphOf(make: (g: Graph, x: Value) => void): Graph {
  const g = new Graph('g');
  make(g, g.input('x', ['S', width]));
  return g;
}

test.each([
  [
    'a call without a kernel',
    graphOf((g, x) => g.output('y', gelu(x))),
    'g: gelu has no kernel where it stands',
  ],
  ['heads of another size', block(64), 'block: attention has heads of 4'],
  [
    'a table with rows at no aligned offsets',
    graphOf((g) => {
      const x = g.input('narrow', ['S', 32]);
      const table = add(g.input('table', [2, 32]), g.input('other', [2, 32]));
      g.output('y', modulate(layerNorm(x, 1e-6), row(table, 0), row(table, 1)));
    }),
    'g: row of 32 elements starts at no aligned offset',
  ],
  [
    'a LoRA whose rank is not said',
    block(2, { lora: 'f32' }),
    'block: k has a LoRA of an unknown rank',
  ],
  [
    'a residual that is read again',
    graphOf((g, x) => {
      const after = add(x, linear(gelu(linear(x, layer('a'))), layer('b')));
      g.update(x, after);
      g.output('y', linear(x, layer('c')));
    }),
    'g: add would replace a value that is still needed',
  ],
  [
    'an input that is replaced though it is not updated',
    graphOf((g, x) => g.output('y', add(x, linear(x, layer('a'))))),
    'g: add would replace a value that is still needed',
  ],
  [
    'an update that needs memory of its own',
    graphOf((g, x) => g.update(x, sub(x, g.input('z', ['S', width])))),
    'g: sub is not computed in the place of the input that it updates',
  ],
  [
    'keys that no layer gives',
    graphOf((g, x) => g.output('y', attention(x, x, x, { heads: 2 }))),
    'g: attention reads all rows of what no linear layer gives',
  ],
])('%s is refused before anything runs', (_, graph, message) => {
  const compile = () => new Program([graph], options);
  expect(compile).toThrow(Refusal);
  expect(compile).toThrow(message);
});

test('a weight that is larger than a binding is refused, as is a graph that was not compiled', () => {
  const limits = { ...options.limits, bindingBytes: 65_535 };
  expect(() => new Program([block()], { ...options, limits })).toThrow(
    /: block: linear q8 .* does not fit: .*values has 65536 bytes, a binding at most 65535/,
  );
  const program = new Program([block()], options);
  const memory = { bins: new Map(), overflows: {} as never };
  expect(() => [...program.list(block(), {}, [], memory)]).toThrow('block is not of this program');
});
