import { expect, test } from 'vitest';
import { add, GraphBuilder } from '../../onnx';
import { memoised } from './memoised';

test('a graph is built once for equal arguments, and anew for others', () => {
  let built = 0;
  const graph = memoised((spec: { width: number }, repeat: number) => {
    built += 1;
    const g = new GraphBuilder('sum');
    let x = g.input('x', 'float32', [spec.width]);
    for (let i = 0; i < repeat; i++) x = add(x, x);
    g.output('y', x);
    return g.build();
  });
  const first = graph({ width: 3 }, 1);
  expect(graph({ width: 3 }, 1)).toBe(first);
  expect(graph({ width: 4 }, 1).key).not.toBe(first.key);
  expect(graph({ width: 3 }, 2).key).not.toBe(first.key);
  expect(built).toBe(3);
});
